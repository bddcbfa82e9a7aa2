package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/render"
)

// truth compares what the log says of a namespace with what a witness saw of its objects.
type truth struct {
	complaints
	w  *witness
	ns string
}

// complaints is the part of a test that takes what is not true.
type complaints interface {
	Helper()
	Errorf(format string, args ...any)
}

// line is the head of what the log says about an object.
type line struct {
	text       string
	from, to   time.Time // the same, but for an interval
	sign       string
	word, name string
	says       string // what happened, and who wrote it
	seen       []sighting
	family     map[string][]sighting
}

var heads = regexp.MustCompile(`^(\d{4}-\S+?)(?:/(\S+))? ([-+~·]) +(?:\S+ +)??(helm release \S+?:|[a-z.]+/\S+) *(.*)$`)

// check checks every line: its times, its durations and its causes.
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
			c.Errorf("there never was a %s/%s: %s", l.word, l.name, l.text)
			continue
		}
		c.time(l)
		c.durations(l)
		c.causes(l)
	}
	if lines == 0 {
		c.Errorf("there is no line to be checked in\n%s", said)
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

// asOfNow matches what goes on: such a line has the time at which it was due.
var asOfNow = regexp.MustCompile(`^(?:still |started )|, up for |(?:^|pods? \S+, )rolling out: |new on \S+, after [^,:]+: `)

// near tolerates that a witness sees something later than tattler does.
const near = 2 * time.Second

func (c *truth) time(l *line) {
	c.Helper()
	switch {
	case !l.from.Equal(l.to): // it happened in between
		for _, s := range l.seen {
			if s.gone && !s.at.Before(l.from) && !s.at.After(l.to.Add(time.Second)) {
				return
			}
		}
		c.Errorf("it was not seen to go then: %s", l.text)
	case l.sign == "+":
		for _, s := range l.seen {
			if created := s.GetCreationTimestamp(); created.Unix() == l.from.Unix() {
				return
			}
		}
		c.Errorf("it was not created then: %s", l.text)
	case l.sign == "~" && l.says != "":
		c.written(l)
	case asOfNow.MatchString(l.says) && c.changedBefore(l):
	case !c.happened(l):
		c.Errorf("no object says that anything happened then: %s", l.text)
	}
}

// longestWait is for how long a line about what goes on waits at most.
const longestWait = 65 * time.Second

// changedBefore reports whether something happened to an object, or to what it owns, not long before a line.
func (c *truth) changedBefore(l *line) bool {
	return l.any(func(s sighting) bool {
		before := l.from.Sub(s.at)
		return before > -near && before < longestWait
	})
}

// written finds the write of a manager, which through the subresource scale has no time.
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
	c.Errorf("%s did not write it then: %s", columns[0], l.text)
}

// happened reports whether an object, or what it owns, says so or was seen to change.
func (c *truth) happened(l *line) bool {
	return l.any(func(s sighting) bool { return s.times()[l.from.Unix()] || s.at.Sub(l.from).Abs() < near })
}

// any reports whether something holds for a version of an object, or of what it owns.
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
	rollouts  = regexp.MustCompile(`(?:^|, )(rolled out|scaled \d+ → \d+) ` + length + `: `)
	jobs      = regexp.MustCompile(`(?:^|(\S+) )complete ` + length)
	ages      = regexp.MustCompile(`(?:existed|gone after|, after|new on \S+, within) (less than 1 s|\d+ (?:s|min|h)(?: \d+ (?:s|min))?)`)
	becoming  = regexp.MustCompile(`→ Ready ` + length)
	again     = regexp.MustCompile(`ready again, (?:after|within) (less than 1 s|\d+ (?:s|min)(?: \d+ s)?)`)
	unchecked = regexp.MustCompile(`up for \d+ (?:s|min)(?: \d+ s)?|changed \d+ times ` + length)
	lengths   = regexp.MustCompile(`\d+ (?:s|min|h)\b`)
)

// durations checks each duration of a line; one that no rule knows is an error.
func (c *truth) durations(l *line) {
	c.Helper()
	rest := unchecked.ReplaceAllString(l.says, "")
	for _, rule := range []struct {
		pattern *regexp.Regexp
		holds   func(l *line, m []string) bool
	}{{rollouts, c.rolled}, {jobs, c.ran}, {again, c.unready}, {ages, c.lived}, {becoming, c.becameReady}} {
		for _, m := range rule.pattern.FindAllStringSubmatch(rest, -1) {
			if !rule.holds(l, m) {
				c.Errorf("%q is not what the objects say: %s%s", m[0], l.text, l.evidence())
			}
		}
		rest = rule.pattern.ReplaceAllString(rest, "")
	}
	if m := lengths.FindString(rest); m != "" {
		c.Errorf("nothing checks %q: %s", m, l.text)
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

// rolled has a rollout or a scaling begin with a write of the spec and end at the line's time.
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

// complete reports whether a Deployment says that it was complete at the line's time.
func (c *truth) complete(l *line) bool {
	for _, s := range l.seen {
		p := s.condition("Progressing")
		if p.get("reason") == "NewReplicaSetAvailable" && p.get("lastUpdateTime") == l.from.UTC().Format(time.RFC3339) {
			return true
		}
	}
	return false
}

// ran has a Job run from its start to its completion.
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

// lived has an object exist from its creation to the line's time, of which only the second is known.
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

// becameReady has a pod become ready when its condition says so, after another time that it says.
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

// unready has a workload lose a pod before the line's time.
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
