package change

import (
	"time"

	"github.com/tattler-dev/tattler/internal/managers"
)

// The server's times are whole seconds, and so are the ends of an interval that come from them.

// cut narrows the interval in which the change happened, and sets Time to its end. was are versions of the object from
// before the change: it still had them when they were written. A successor was created after the object was gone. A time
// outside of the interval is by a clock that is wrong, and says nothing.
func (c *Change) cut(was ...map[string]any) {
	c.Time = c.At
	if c.Since.IsZero() {
		return // it was seen as it happened
	}
	for _, obj := range was {
		if t := lastAlive(obj); t.After(c.Since) && t.Before(c.At) {
			c.Since = t
		}
	}
	if t := created(c.Successor, c.At); t.Before(c.At) {
		c.Time = later(t, c.Since)
	}
}

// lastAlive returns the last time at which an object certainly had this version or an earlier one: when it was created,
// last written, or when its deletion was requested. Zero if it has no times.
func lastAlive(obj map[string]any) time.Time {
	last := created(obj, time.Time{})
	for _, m := range managers.Parse(obj).List() {
		if t, err := time.Parse(time.RFC3339, m.Time); err == nil {
			last = later(last, t)
		}
	}
	if t := Timestamp(obj, "deletionTimestamp"); !t.IsZero() { // the end of the grace period
		grace, _ := Metadata(obj)["deletionGracePeriodSeconds"].(int64)
		last = later(last, t.Add(-time.Duration(grace)*time.Second))
	}
	return last
}

// Existed returns the last time before a moment at which the old state of a changed object certainly was the current
// one. An object without an old state was created at that time. Zero: the object has no times.
func Existed(before, after map[string]any, at time.Time) time.Time {
	if before == nil {
		return created(after, time.Time{})
	}
	if t := lastAlive(before); t.Before(at) {
		return t
	}
	return created(before, time.Time{})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
