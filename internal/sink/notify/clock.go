package notify

import (
	"fmt"
	"time"
	_ "time/tzdata" // a container has no zones of its own
)

// Clock is a time of day, HH:MM, or empty.
type Clock string

// UnmarshalText parses HH:MM.
func (c *Clock) UnmarshalText(text []byte) error {
	if _, err := time.Parse("15:04", string(text)); err != nil || len(text) != len("15:04") {
		return fmt.Errorf("%q is not a time of day, such as 08:00", text)
	}
	*c = Clock(text)
	return nil
}

// validate checks a Clock that was not unmarshalled. An empty one is valid.
func (c Clock) validate() error {
	if c == "" {
		return nil
	}
	return c.UnmarshalText([]byte(c))
}

// on returns the time of day on the day of t, plus so many days.
func (c Clock) on(t time.Time, days int) time.Time {
	clock, _ := time.Parse("15:04", string(c)) // Validate checked it
	return time.Date(t.Year(), t.Month(), t.Day()+days, clock.Hour(), clock.Minute(), 0, 0, t.Location())
}

// schedule decides when to send what is held.
type schedule struct {
	window time.Duration
	digest Clock
	quiet  QuietHours
	zone   *time.Location
}

// due returns when to send a message, given when its first change was taken and when it was observed. A digest counts
// from the observation: if the process was not running at its time, the digest is due as soon as it is.
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

// quietUntil returns the end of the quiet hours that contain a time.
func (s schedule) quietUntil(at time.Time) (end time.Time, quiet bool) {
	if s.quiet.From == "" {
		return end, false
	}
	at = at.In(s.zone)
	for _, day := range []int{-1, 0} { // yesterday's quiet hours may not be over
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

// holds reports whether changes are held now, to be sent later.
func (s schedule) holds(now time.Time) bool {
	_, quiet := s.quietUntil(now)
	return s.window > 0 || s.digest != "" || quiet
}
