// Package when parses and prints times as people write them: on a command line, and in a URL.
package when

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Forms lists the forms that Parse reads, for help texts.
const Forms = "30m, 3d, 10:42, yesterday 10:42, 2026-11-21 10:42 or RFC 3339"

// earliest is the earliest time that is read. The zero time, which means no limit elsewhere, is before it.
var earliest = time.Unix(0, 0)

// Moment is a time as a person reads it, with the date, in the local zone.
func Moment(t time.Time) string { return t.Local().Format(time.DateTime) }

// Span is like Moment, of an interval. Its end has a date only if that is another one than that of the beginning.
func Span(from, to time.Time) string {
	switch from, to := from.Local(), to.Local(); {
	case from.Equal(to):
		return Moment(to)
	case from.Format(time.DateOnly) != to.Format(time.DateOnly):
		return Moment(from) + "–" + Moment(to)
	}
	return Moment(from) + "–" + to.Local().Format(time.TimeOnly)
}

// Parse reads a past time, relative to now and in its zone: RFC 3339, a time of today (10:42, 10:42:05), a day with or
// without a time (today, yesterday 10:42, 2026-11-21, 2026-11-21 10:42), or an age (90s, 30m, 2h30m, 3d, 2w). A day alone
// means its beginning. Of a time that occurs twice, because the clock was set back from summer time, it is the first.
// Times before 1970 are refused.
func Parse(text string, now time.Time) (time.Time, error) {
	s := strings.Join(strings.Fields(text), " ")
	t, ok := parse(s, now, first)
	switch {
	case !ok:
		return time.Time{}, fmt.Errorf("%q is not a time: write %s", text, Forms)
	case t.Before(earliest):
		return time.Time{}, fmt.Errorf("%q is before 1970", text)
	case !t.After(now):
		return t, nil
	case clock(s):
		return time.Time{}, fmt.Errorf("%s is later than now: did you mean \"yesterday %s\"?", s, s)
	}
	return time.Time{}, fmt.Errorf("%q is later than now", text)
}

// ParseEnd reads the end of a time range, which may be in the future. Of a time that occurs twice, it is the second.
func ParseEnd(text string, now time.Time) (time.Time, error) {
	if t, ok := parse(strings.Join(strings.Fields(text), " "), now, second); ok && !t.Before(earliest) {
		return t, nil
	}
	return Parse(text, now)
}

// first returns the first time with the date and the time of day of t.
func first(t time.Time) time.Time {
	start, _ := t.ZoneBounds()
	if start.IsZero() {
		return t
	}
	if other := t.Add(offset(t) - offset(start.Add(-1))); other.Before(start) && other.Before(t) {
		return other
	}
	return t
}

// second returns the last time with the date and the time of day of t.
func second(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if end.IsZero() {
		return t
	}
	if other := t.Add(offset(t) - offset(end)); !other.Before(end) {
		return other
	}
	return t
}

// offset is how far a time's zone is ahead of UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// parse reads a time; pick chooses one of two times with the same date and time of day.
func parse(s string, now time.Time, pick func(time.Time) time.Time) (time.Time, bool) {
	if d, ok := Age(s); ok {
		return now.Add(-d), true
	}
	if t, err := time.ParseInLocation(time.RFC3339Nano, s, now.Location()); err == nil {
		return t, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return pick(t), true
		}
	}
	day, rest, _ := strings.Cut(s, " ")
	y, m, d := now.Date()
	switch {
	case day == "today":
	case day == "yesterday":
		d--
	case clock(s):
		rest = s
	default:
		t, err := time.ParseInLocation(time.DateOnly, s, now.Location())
		return pick(t), err == nil
	}
	at, ok := timeOfDay(rest)
	if !ok {
		return time.Time{}, false
	}
	return pick(time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0, now.Location())), true
}

// clock reports whether a text is a time of day alone.
func clock(s string) bool {
	_, ok := timeOfDay(s)
	return ok && s != ""
}

// timeOfDay reads 10:42 and 10:42:05; empty is the beginning of the day.
func timeOfDay(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, true
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

const day = 24 * time.Hour

// Age reads a time that is relative to now: Go's durations, with whole weeks and days before them (1d12h), or now, whose
// age is 0. ok is false for other texts, such as a time of day or a date.
func Age(text string) (age time.Duration, ok bool) {
	s := strings.Join(strings.Fields(text), " ")
	if s == "now" {
		return 0, true
	}
	s = strings.TrimSuffix(s, " ago")
	var sum time.Duration
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		n, rest, found := strings.Cut(s, unit.name)
		if !found {
			continue
		}
		count, err := strconv.ParseUint(n, 10, 16)
		if err != nil || time.Duration(count) > (math.MaxInt64-sum)/unit.is {
			return 0, false
		}
		sum, s = sum+time.Duration(count)*unit.is, rest
	}
	if s == "" {
		return sum, sum > 0
	}
	d, err := time.ParseDuration(s)
	return sum + d, err == nil && d >= 0 && d <= math.MaxInt64-sum
}
