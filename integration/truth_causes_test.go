package integration

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	reasons  = regexp.MustCompile(`(?:→ |^|, )(CrashLoopBackOff|ImagePullBackOff|ErrImagePull)()(?:[,: ]|$)`)
	exits    = regexp.MustCompile(`exit code (\d+)`)
	restarts = regexp.MustCompile(`, (\d+) restarts?`)
	nodes    = regexp.MustCompile(`new on ([^\s,]+)`)
	counts   = regexp.MustCompile(`(\d+)/(\d+) ready`)
	failing  = regexp.MustCompile(`(\d+) pods? (CrashLoopBackOff|ImagePullBackOff|ErrImagePull|NotReady)`)
	moved    = regexp.MustCompile(`(\d+) pods? (replaced|new|gone)`)
	stuckFor = regexp.MustCompile(`(?:^|; )(ProgressDeadlineExceeded)`)
)

// causes checks the state and the reason given by a line.
func (c *truth) causes(l *line) {
	c.Helper()
	says := func(holds bool, what string) {
		c.Helper()
		if !holds {
			c.Errorf("no object says %q: %s", what, l.text)
		}
	}
	if l.word == "pod" {
		for _, m := range reasons.FindAllStringSubmatch(l.says, -1) {
			says(waited(l.seen, m[1], m[2]), m[0])
		}
		for _, m := range exits.FindAllStringSubmatch(l.says, -1) {
			says(anyContainer(l.seen, func(s sighting) bool {
				return strconv.FormatInt(s.number("lastState", "terminated", "exitCode"), 10) == m[1]
			}), m[0])
		}
		for _, m := range restarts.FindAllStringSubmatch(l.says, -1) {
			says(anyContainer(l.seen, func(s sighting) bool {
				return strconv.FormatInt(s.number("restartCount"), 10) == m[1]
			}) || strings.Contains(l.says, "in all"), m[0])
		}
		for _, m := range nodes.FindAllStringSubmatch(l.says, -1) {
			says(l.seen[len(l.seen)-1].get("spec", "nodeName") == m[1], m[0])
		}
		return
	}
	for _, m := range counts.FindAllStringSubmatch(l.says, -1) {
		says(c.ready(l, m), m[0])
	}
	for _, m := range failing.FindAllStringSubmatch(l.says, -1) {
		says(c.failing(l, m), m[0])
	}
	for _, m := range moved.FindAllStringSubmatch(l.says, -1) {
		says(c.moved(l, m), m[0])
	}
	for _, m := range stuckFor.FindAllStringSubmatch(l.says, -1) {
		for _, s := range l.seen {
			if s.condition("Progressing").get("reason") == m[1] {
				m = nil
				break
			}
		}
		says(m == nil, "ProgressDeadlineExceeded")
	}
}

func anyContainer(pod []sighting, holds func(s sighting) bool) bool {
	for _, s := range pod {
		for _, status := range s.list("status", "containerStatuses") {
			if holds(status) {
				return true
			}
		}
	}
	return false
}

// waited reports whether a container of a pod waited for a reason, with an image.
func waited(pod []sighting, reason, image string) bool {
	return anyContainer(pod, func(s sighting) bool {
		is := s.get("state", "waiting", "reason")
		return is == reason && (image == "" || s.get("image") == image)
	})
}

// ready finds the version of a workload with that many ready pods.
func (c *truth) ready(l *line, m []string) bool {
	for _, s := range l.seen {
		if fmt.Sprint(s.number("status", "readyReplicas")) == m[1] && fmt.Sprint(s.number("spec", "replicas")) == m[2] {
			return true
		}
	}
	return false
}

// failing counts the pods of a workload that were failing at the line's time.
func (c *truth) failing(l *line, m []string) bool {
	n := 0
	for _, pod := range podsOf(l.family) {
		switch {
		case m[2] == "NotReady" && unreadyBy(pod, l.from), m[2] != "NotReady" && waited(pod, m[2], ""):
			n++
		}
	}
	return fmt.Sprint(n) == m[1]
}

func unreadyBy(pod []sighting, by time.Time) bool {
	for _, s := range pod {
		if s.condition("Ready").get("status") == "False" && !s.at.After(by.Add(near)) {
			return true
		}
	}
	return false
}

// moved counts the pods of a workload that were created and deleted since the write of the spec, or, for
// drains, since all were last ready.
func (c *truth) moved(l *line, m []string) bool {
	cause := l.seen[0].wroteSpec()
	generation := l.seen[0].GetGeneration()
	for i, s := range l.seen {
		may := s.mayHaveWrittenSpec()
		wrote := may[0]
		if len(may) > 1 && i > 0 { // the write came after the version before it, which has times
			for at := range l.seen[i-1].times() {
				if next := time.Unix(at+1, 0); next.After(wrote) && !next.After(s.at) {
					wrote = next
				}
			}
		}
		if s.GetGeneration() != generation && !wrote.After(l.from) {
			generation, cause = s.GetGeneration(), wrote
		}
	}
	born, gone := 0, 0
	for _, pod := range podsOf(l.family) {
		first, last := pod[0].GetCreationTimestamp(), pod[len(pod)-1]
		if !first.Time.Before(cause) && !first.Time.After(l.from) {
			born++
		}
		if last.gone || last.GetDeletionTimestamp() != nil {
			gone++
		}
	}
	switch deleted := l.seen[len(l.seen)-1].gone; {
	case m[2] == "new":
		return fmt.Sprint(born) == m[1]
	case m[2] == "replaced" && cause.Equal(l.seen[0].wroteSpec()): // the spec was not written
		return fmt.Sprint(gone) == m[1]
	case m[2] == "replaced":
		return fmt.Sprint(born) == m[1] && fmt.Sprint(gone) == m[1]
	default:
		return fmt.Sprint(gone) == m[1] || deleted && gone >= 1
	}
}
