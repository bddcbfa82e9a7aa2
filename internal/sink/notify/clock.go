package notify

import (
	"fmt"
	"time"
	_ "time/tzdata" // a container has no zones of its own
)

// Clock is a time of day, HH:MM; empty for none.
type Clock string

// UnmarshalText reads HH:MM.
func (c *Clock) UnmarshalText(text []byte) error {
	if _, err := time.Parse("15:04", string(text)); err != nil || len(text) != len("15:04") {
		return fmt.Errorf("%q is no time of day such as 08:00", text)
	}
	*c = Clock(text)
	return nil
}

// validate is UnmarshalText for who sets the field; no time is right.
func (c Clock) validate() error {
	if c == "" {
		return nil
	}
	return c.UnmarshalText([]byte(c))
}

// on is the time of day on the day of t, so many days later.
func (c Clock) on(t time.Time, days int) time.Time {
	clock, _ := time.Parse("15:04", string(c)) // Validate has seen to it
	return time.Date(t.Year(), t.Month(), t.Day()+days, clock.Hour(), clock.Minute(), 0, 0, t.Location())
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
	if s.digest != "" {
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
	if s.quiet.From == "" {
		return end, false
	}
	at = at.In(s.zone)
	for _, day := range []int{-1, 0} { // those that began yesterday may not be over
		from, to := s.quiet.From.on(at, day), s.quiet.To.on(at, day)
		if s.quiet.To < s.quiet.From {
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
	return s.window > 0 || s.digest != "" || quiet
}
