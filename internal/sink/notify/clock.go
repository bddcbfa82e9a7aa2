package notify

import (
	"fmt"
	"time"
	_ "time/tzdata" // a container has no zones of its own
)

// Clock is a time of day. Its text is HH:MM.
type Clock struct {
	minutes int
	set     bool
}

// UnmarshalText reads HH:MM.
func (c *Clock) UnmarshalText(text []byte) error {
	t, err := time.Parse("15:04", string(text))
	if err != nil || len(text) != len("15:04") {
		return fmt.Errorf("%q is no time of day such as 08:00", text)
	}
	*c = Clock{minutes: t.Hour()*60 + t.Minute(), set: true}
	return nil
}

// on is the time of day on the day of t, so many days later.
func (c Clock) on(t time.Time, days int) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()+days, 0, c.minutes, 0, 0, t.Location())
}

// schedule says when what is held is told.
type schedule struct {
	window time.Duration
	digest Clock
	quiet  QuietHours
	zone   *time.Location
}

// due is when a message is to be sent whose first change was taken in at one time, and seen at another. A
// digest counts from when the change was seen: one that the process has slept through is told when it wakes.
func (s schedule) due(taken, seen time.Time) time.Time {
	at := taken.Add(s.window)
	if s.digest.set {
		seen = seen.In(s.zone)
		next := s.digest.on(seen, 0)
		if !next.After(seen) {
			next = s.digest.on(seen, 1)
		}
		if next.After(at) {
			at = next
		}
	}
	if end, quiet := s.quietUntil(at); quiet {
		return end
	}
	return at
}

// quietUntil is the end of the quiet hours that a time is in.
func (s schedule) quietUntil(at time.Time) (end time.Time, quiet bool) {
	if !s.quiet.From.set {
		return end, false
	}
	at = at.In(s.zone)
	for _, day := range []int{-1, 0} { // those that began yesterday may not be over
		from, to := s.quiet.From.on(at, day), s.quiet.To.on(at, day)
		if s.quiet.To.minutes < s.quiet.From.minutes {
			to = s.quiet.To.on(at, day+1)
		}
		if !at.Before(from) && at.Before(to) {
			return to, true
		}
	}
	return end, false
}

// holds tells whether changes of now are told later.
func (s schedule) holds(now time.Time) bool {
	_, quiet := s.quietUntil(now)
	return s.window > 0 || s.digest.set || quiet
}
