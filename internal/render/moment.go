package render

import (
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// moment is when something happened, by two clocks. A zero time is unknown.
//
// A duration is the difference of two moments by one clock: the clocks may differ, and changes that the API server sent
// late, as after a restart, were seen long after they happened.
type moment struct {
	server time.Time // the object's own time, usually in whole seconds
	seen   time.Time // when the change was seen, if it was seen as it happened
}

// momentOf returns when a change happened.
func momentOf(c change.Change) moment {
	var m moment
	if c.Dated() {
		m.server = c.Time
	}
	late := !m.server.IsZero() && c.At.Sub(m.server).Abs() > lateness
	if c.Since.IsZero() && !late {
		m.seen = c.At
	}
	return m
}

// lateSpan is the interval in which a change happened that was seen later, as after an absence.
type lateSpan struct {
	late     bool
	from, to time.Time
	seen     time.Time
}

func lateSpanOf(c change.Change) lateSpan {
	from, to := c.Span()
	return lateSpan{!from.Equal(to) || c.At.Sub(from) > lateness, from, to, c.At}
}

// causeOf returns when the spec of a change was written. A change derived from a list may have been written by several
// managers at several times: the managers of the spec count.
func causeOf(c change.Change) moment {
	m := momentOf(c)
	if !c.Net {
		return m
	}
	m.server = time.Time{}
	times := change.TimesOf(c.Managers)
	for _, f := range c.Fields {
		if at := times.Of(f.Manager, f.Subresource); field(f.Path, 0) == "spec" && at.After(m.server) {
			m.server = at
		}
	}
	if m.server.Before(c.Since.Add(-lateness)) || m.server.After(c.At.Add(lateness)) {
		m.server = time.Time{} // the manager's last write did not update its entry
	}
	return m
}

// took describes the time between two moments: "in 13 s", or "within 1 s" if both are in the same second. It is empty if no
// clock saw both.
func took(from, to moment) string {
	switch {
	case !from.server.IsZero() && !to.server.IsZero():
		return distance(from.server, to.server)
	case !from.seen.IsZero() && !to.seen.IsZero():
		return distance(from.seen, to.seen)
	}
	return ""
}

// after is like took, but says "after 13 s".
func after(from, to moment) string {
	said := took(from, to)
	if rest, ok := strings.CutPrefix(said, "in "); ok {
		return "after " + rest
	}
	return said
}

// distance describes the time between two times. It is as exact as they are: a time without fractions is known to the second.
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
