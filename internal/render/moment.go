package render

import (
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// moment is when something happened, by two clocks. The zero time means that the clock did not see it.
//
// A duration is the distance of two moments by one clock: the clocks may differ, and what the API server sent
// late, as after a restart, was seen long after it happened.
type moment struct {
	server time.Time // what the object says, in whole seconds as a rule
	seen   time.Time // when the change was seen, if that was as it happened
}

// momentOf is when a change happened.
func momentOf(c change.Change) moment {
	var m moment
	if !c.Time.IsZero() && !c.Time.Equal(c.At) {
		m.server = c.Time
	}
	late := !m.server.IsZero() && c.At.Sub(m.server).Abs() > lateness
	if c.Since.IsZero() && !late {
		m.seen = c.At
	}
	return m
}

// caught is when a change happened that was seen later, as after an absence: from the one to the other.
type caught struct {
	late     bool
	from, to time.Time
	seen     time.Time
}

func caughtUp(c change.Change) caught {
	from, to := c.Span()
	return caught{!from.Equal(to) || c.At.Sub(from) > lateness, from, to, c.At}
}

// causeOf is when somebody wrote the spec that a change brought. What a list derived may have been written by
// several managers at several times: those of the spec count.
func causeOf(c change.Change) moment {
	m := momentOf(c)
	if !c.Net {
		return m
	}
	m.server = time.Time{}
	for _, f := range c.Fields {
		if field(f.Path, 0) != "spec" {
			continue
		}
		for _, w := range c.Managers {
			at, err := time.Parse(time.RFC3339, w.Time)
			if err == nil && w.Manager == f.Manager && w.Subresource == f.Subresource && at.After(m.server) {
				m.server = at
			}
		}
	}
	if m.server.Before(c.Since.Add(-lateness)) || m.server.After(c.At.Add(lateness)) {
		m.server = time.Time{} // a manager's entry that its last write left as it was
	}
	return m
}

// took is how long it was from one moment to another: "in 13 s", or "within 1 s" where both are in the same
// second; empty where a clock saw but one of them.
func took(from, to moment) string {
	switch {
	case !from.server.IsZero() && !to.server.IsZero():
		return distance(from.server, to.server)
	case !from.seen.IsZero() && !to.seen.IsZero():
		return distance(from.seen, to.seen)
	}
	return ""
}

// after is took in other words: "after 13 s".
func after(from, to moment) string {
	said := took(from, to)
	if rest, ok := strings.CutPrefix(said, "in "); ok {
		return "after " + rest
	}
	return said
}

// distance is as exact as its ends: a time without fractions is known to the second.
func distance(from, to time.Time) string {
	if from.Nanosecond() == 0 || to.Nanosecond() == 0 {
		from, to = from.Truncate(time.Second), to.Truncate(time.Second)
	}
	switch d := to.Sub(from); {
	case d < 0:
		return ""
	case d == 0:
		return "within 1 s"
	default:
		return "in " + Duration(d)
	}
}
