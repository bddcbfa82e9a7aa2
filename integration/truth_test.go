package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/render"
)

// truth compares the log of a namespace with the objects that an observer saw.
type truth struct {
	complaints
	w  *observer
	ns string
}

// complaints is the part of testing.T that truth uses.
type complaints interface {
	Helper()
	Errorf(format string, args ...any)
}

// line is the head of a log entry about an object.
type line struct {
	text       string
	from, to   time.Time // the same unless it is an interval
	sign       string
	word, name string
	says       string // the statement and the manager
	seen       []sighting
	family     map[string][]sighting
}

var heads = regexp.MustCompile(`^(\d{4}-\S+?)(?:/(\S+))? ([-+~·]) +(?:\S+ +)??(helm release \S+?:|[a-z.]+/\S+) *(.*)$`)

// check checks the times, durations and causes of every line.
func (c *truth) check(said string) {
	c.Helper()
	lines := 0
	for text := range strings.Lines(said) {
		m := heads.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil || strings.Contains(text, "cm/kube-root-ca.crt") {
			continue
		}
		lines++
		l := c.parse(m)
		if len(l.seen) == 0 {
			c.Errorf("%s/%s never existed: %s", l.word, l.name, l.text)
			continue
		}
		c.time(l)
		c.durations(l)
		c.causes(l)
	}
	if lines == 0 {
		c.Errorf("no line to check in\n%s", said)
	}
}

func (c *truth) parse(m []string) *line {
	l := &line{text: m[0], sign: m[3], says: strings.TrimSpace(m[5])}
	l.from, _ = time.Parse(time.RFC3339, m[1])
	if l.to = l.from; m[2] != "" {
		l.to, _ = time.Parse(time.RFC3339, m[2])
	}
	if release, ok := strings.CutPrefix(m[4], "helm release "); ok {
		revision := regexp.MustCompile(`v(\d+) \(`).FindStringSubmatch(l.says)
		l.word, l.name, l.says = "secret", "sh.helm.release.v1."+strings.TrimSuffix(release, ":")+".v"+revision[1], ""
	} else {
		l.word, l.name, _ = strings.Cut(m[4], "/")
	}
	l.seen = c.w.of(c.ns, l.word, l.name)
	l.family = c.w.family(l.seen)
	return l
}

// asOfNow matches lines about ongoing states, whose time is when the line was due.
var asOfNow = regexp.MustCompile(`(?:^|; )rolling (?:out|back): `)

// near is the tolerated delay between the observer and tattler, of which a busy machine may run either one later.
const near = 5 * time.Second

func (c *truth) time(l *line) {
	c.Helper()
	switch {
	case !l.from.Equal(l.to): // it happened within the interval
		for _, s := range l.seen {
			if s.gone && !s.at.Before(l.from) && !s.at.After(l.to.Add(time.Second)) {
				return
			}
		}
		c.Errorf("no deletion was seen then: %s", l.text)
	case l.sign == "+":
		for _, s := range l.seen {
			if created := s.GetCreationTimestamp(); created.Unix() == l.from.Unix() {
				return
			}
		}
		c.Errorf("not created then: %s", l.text)
	case l.sign == "~" && l.says != "":
		c.written(l)
	case asOfNow.MatchString(l.says) && c.changedBefore(l):
	case !c.happened(l):
		c.Errorf("no object confirms that anything happened then: %s", l.text)
	}
}

// longestWait bounds the delay of a line about an ongoing state.
const longestWait = 65 * time.Second

// changedBefore reports whether an object, or one that it owns, changed shortly before a line's time.
func (c *truth) changedBefore(l *line) bool {
	return l.any(func(s sighting) bool {
		before := l.from.Sub(s.at)
		return before > -near && before < longestWait
	})
}

// written finds a manager's write; writes through the subresource scale have no time.
func (c *truth) written(l *line) {
	c.Helper()
	columns := strings.Fields(l.says)
	for _, s := range l.seen {
		for _, m := range s.GetManagedFields() {
			if m.Manager != columns[0] {
				continue
			}
			if m.Time == nil && s.at.Sub(l.from).Abs() < near || m.Time != nil && m.Time.Unix() == l.from.Unix() {
				return
			}
		}
	}
	c.Errorf("%s did not write then: %s", columns[0], l.text)
}

// happened reports whether an object, or one that it owns, has that time or was seen to change at it.
func (c *truth) happened(l *line) bool {
	return l.any(func(s sighting) bool { return s.times()[l.from.Unix()] || s.at.Sub(l.from).Abs() < near })
}

// any reports whether holds is true for a version of an object, or of one that it owns.
func (l *line) any(holds func(s sighting) bool) bool {
	if slices.ContainsFunc(l.seen, holds) {
		return true
	}
	for _, seen := range l.family {
		if slices.ContainsFunc(seen, holds) {
			return true
		}
	}
	return false
}

const length = `(within 1 s|in less than 1 s|in \d+ (?:s|min|h)(?: \d+ (?:s|min))?)`

var (
	rollouts  = regexp.MustCompile(`(?:^|, )(rolled out|rolled back(?: to \S+)?|scaled \d+ → \d+) ` + length + `: `)
	jobs      = regexp.MustCompile(`(?:^|(\S+) )complete ` + length)
	ages      = regexp.MustCompile(`(?:existed|gone after|→ \w+, after) (less than 1 s|\d+ (?:s|min|h)(?: \d+ (?:s|min))?)`)
	becoming  = regexp.MustCompile(`→ Ready ` + length)
	again     = regexp.MustCompile(`ready again, (?:after|within) (less than 1 s|\d+ (?:s|min)(?: \d+ s)?)`)
	unchecked = regexp.MustCompile(`up for \d+ (?:s|min)(?: \d+ s)?|changed \d+ times ` + length)
	lengths   = regexp.MustCompile(`\d+ (?:s|min|h)\b`)
)

// durations checks each duration of a line; an unknown duration is an error.
func (c *truth) durations(l *line) {
	c.Helper()
	rest := unchecked.ReplaceAllString(l.says, "")
	for _, rule := range []struct {
		pattern *regexp.Regexp
		holds   func(l *line, m []string) bool
	}{{rollouts, c.rolled}, {jobs, c.ran}, {again, c.unready}, {ages, c.lived}, {becoming, c.becameReady}} {
		for _, m := range rule.pattern.FindAllStringSubmatch(rest, -1) {
			if !rule.holds(l, m) {
				c.Errorf("%q contradicts the objects: %s%s", m[0], l.text, l.evidence())
			}
		}
		rest = rule.pattern.ReplaceAllString(rest, "")
	}
	if m := lengths.FindString(rest); m != "" {
		c.Errorf("no check for %q: %s", m, l.text)
	}
}

// evidence lists the versions of an object with the times that a duration depends on.
func (l *line) evidence() string {
	var b strings.Builder
	for _, s := range l.seen {
		p := s.condition("Progressing")
		fmt.Fprintf(&b, "\n\tseen %s: generation %d, spec written %s, %d ready, %v since %v", s.at.UTC().Format("15:04:05.000"), s.GetGeneration(),
			s.wroteSpec().UTC().Format(time.TimeOnly), s.number("status", "readyReplicas"), p.get("reason"), p.get("lastUpdateTime"))
	}
	return b.String()
}

// rolled checks a rollout or scaling that begins with a write of the spec and ends at the line's time.
func (c *truth) rolled(l *line, m []string) bool {
	generation := int64(0)
	for _, s := range l.seen {
		if s.GetGeneration() == generation {
			continue
		}
		generation = s.GetGeneration()
		if l.word == "deploy" && m[1] == "rolled out" && !c.complete(l) {
			continue
		}
		for _, from := range s.mayHaveWrittenSpec() {
			if between(from, l.from) == m[2] {
				return true
			}
		}
	}
	return false
}

// complete reports whether a Deployment was complete at the line's time by its status.
func (c *truth) complete(l *line) bool {
	for _, s := range l.seen {
		p := s.condition("Progressing")
		if p.get("reason") == "NewReplicaSetAvailable" && p.get("lastUpdateTime") == l.from.UTC().Format(time.RFC3339) {
			return true
		}
	}
	return false
}

// ran checks a Job that ran from its start to its completion.
func (c *truth) ran(l *line, m []string) bool {
	runs := l.seen
	if m[1] != "" {
		runs = c.w.of(c.ns, "job", m[1])
	}
	for _, s := range runs {
		from, _ := time.Parse(time.RFC3339, fmt.Sprint(s.get("status", "startTime")))
		to, err := time.Parse(time.RFC3339, fmt.Sprint(s.get("status", "completionTime")))
		if err == nil && between(from, to) == m[2] {
			return true
		}
	}
	return false
}

// lived checks an object that existed from its creation to the line's time. The deletion's time is known only
// from the line.
func (c *truth) lived(l *line, m []string) bool {
	for _, s := range l.seen {
		for _, more := range []time.Duration{-time.Second, 0, time.Second} {
			if age := l.from.Sub(s.GetCreationTimestamp().Time) + more; render.Duration(max(age, 0)) == m[1] {
				return true
			}
		}
	}
	return false
}

// becameReady checks a pod that became ready when its condition says so, after another of its times.
func (c *truth) becameReady(l *line, m []string) bool {
	for _, s := range l.seen {
		to, err := time.Parse(time.RFC3339, fmt.Sprint(s.condition("Ready").get("lastTransitionTime")))
		if err != nil {
			continue
		}
		for _, before := range l.seen {
			for from := range before.times() {
				if between(time.Unix(from, 0), to) == m[1] {
					return true
				}
			}
		}
	}
	return false
}

// unready checks a workload that lost a pod before the line's time.
func (c *truth) unready(l *line, m []string) bool {
	for i, s := range l.seen {
		if i == 0 || s.number("status", "readyReplicas") >= l.seen[i-1].number("status", "readyReplicas") {
			continue
		}
		for at := range s.times() {
			if lasted := l.from.Sub(time.Unix(at, 0)); lasted >= 0 && (render.Duration(lasted) == m[1] || lasted == 0 && strings.HasSuffix(m[0], "within 1 s")) {
				return true
			}
		}
	}
	return false
}
