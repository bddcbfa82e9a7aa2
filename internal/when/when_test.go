package when

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // where the system has none
)

func TestParse(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 3, 1, 10, 45, 30, 0, zone)
	for _, tc := range []struct{ why, in, want string }{
		{"a while ago", "30m", "2026-03-01 10:15:30"},
		{"with ago", "90s ago", "2026-03-01 10:44:00"},
		{"days, which Go's durations lack", "3d", "2026-02-26 10:45:30"},
		{"days and hours", "1d12h", "2026-02-27 22:45:30"},
		{"weeks", "1w1d", "2026-02-21 10:45:30"},
		{"an age of zero is now", "0s", "2026-03-01 10:45:30"},
		{"now", "now", "2026-03-01 10:45:30"},
		{"a time of today", "10:42", "2026-03-01 10:42:00"},
		{"with seconds", "10:42:05", "2026-03-01 10:42:05"},
		{"without a leading zero", "9:05", "2026-03-01 09:05:00"},
		{"the last day of a month, and a late hour", "yesterday 23:59", "2026-02-28 23:59:00"},
		{"two spaces", " yesterday  23:59 ", "2026-02-28 23:59:00"},
		{"a day is its beginning", "yesterday", "2026-02-28 00:00:00"},
		{"today", "today", "2026-03-01 00:00:00"},
		{"a date", "2026-02-03", "2026-02-03 00:00:00"},
		{"a date and a time", "2026-02-03 04:05", "2026-02-03 04:05:00"},
		{"to the second", "2026-02-03 04:05:06", "2026-02-03 04:05:06"},
		{"without a zone", "2026-02-03T04:05:06", "2026-02-03 04:05:06"},
		{"RFC 3339 with a zone", "2026-02-03T04:05:06Z", "2026-02-03 05:05:06"},
		{"fractions", "2026-02-03T04:05:06.5+01:00", "2026-02-03 04:05:06"},
		{"later today", "10:46", `is later than now: did you mean "yesterday 10:46"?`},
		{"another day", "2026-03-02", "is later than now"},
		{"empty", "", "is not a time"},
		{"a number without a unit", "30", "is not a time"},
		{"a negative age", "-30m", "is not a time"},
		{"no such hour", "25:00", "is not a time"},
		{"no such day", "2026-02-30", "is not a time"},
		{"a day and nonsense", "yesterday noon", "is not a time"},
		{"a time before the day", "10:42 yesterday", "is not a time"},
		{"a unit alone", "d", "is not a time"},
		{"too many days", "99999d", "is not a time"},
		{"an age that no duration holds", "40000w", "is not a time"},
		{"two ages whose sum no duration holds", "2000000h12000w", "is not a time"},
		{"the sum of weeks and hours", "12000w2000000h", "is not a time"},
		{"the zero time, which would mean no limit", "0001-01-01", "is before 1970"},
		{"years ago", "60000d", "is before 1970"},
		{"the first day", "1970-01-01T00:00:00Z", "1970-01-01 01:00:00"},
	} {
		got, err := Parse(tc.in, now)
		text := got.In(zone).Format(time.DateTime)
		if err != nil {
			text = err.Error()
		}
		if text != tc.want && (err == nil || !strings.Contains(text, tc.want)) {
			t.Errorf("%s: %q is %s, want %s", tc.why, tc.in, text, tc.want)
		}
	}
}

func TestParseEnd(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 45, 0, 0, time.UTC)
	if _, err := ParseEnd("0001-01-01T00:00:00Z", now); err == nil || !strings.Contains(err.Error(), "is before 1970") {
		t.Errorf("the zero time, which would mean no end: %v", err)
	}
	for in, want := range map[string]string{
		"10:42": "2026-03-01 10:42:00", " 10:50": "2026-03-01 10:50:00", "2026-03-02": "2026-03-02 00:00:00", "5m": "2026-03-01 10:40:00",
	} {
		if got, err := ParseEnd(in, now); err != nil || got.Format(time.DateTime) != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	if _, err := ParseEnd("noon", now); err == nil || !strings.Contains(err.Error(), "is not a time") {
		t.Error(err)
	}
}

// TestTwice: of a time that occurs twice, a range has both; a time that does not occur is not changed, and neither is RFC 3339.
func TestTwice(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ why, now, in, first, second string }{
		{"the repeated hour", "2026-10-26T10:00:00Z", "2026-10-25 02:30", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"its beginning", "2026-10-26T10:00:00Z", "2026-10-25T02:00", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"after it", "2026-10-26T10:00:00Z", "2026-10-25 03:00", "2026-10-25T02:00:00Z", "2026-10-25T02:00:00Z"},
		{"before it", "2026-10-26T10:00:00Z", "2026-10-25 01:59:59", "2026-10-24T23:59:59Z", "2026-10-24T23:59:59Z"},
		{"yesterday", "2026-10-26T10:00:00Z", "yesterday 02:30", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"today, in the first of the hours", "2026-10-25T00:40:00Z", "02:30", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"with its zone", "2026-10-26T10:00:00Z", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z"},
		{"with the other zone", "2026-10-26T10:00:00Z", "2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z"},
		{"an age", "2026-10-25T01:30:00Z", "1h", "2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z"},
		{"in summer", "2026-10-26T10:00:00Z", "2026-07-01 02:30", "2026-07-01T00:30:00Z", "2026-07-01T00:30:00Z"},
		{"after the clock was set forward", "2026-10-26T10:00:00Z", "2026-03-29 03:30", "2026-03-29T01:30:00Z", "2026-03-29T01:30:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []struct {
			parse func(string, time.Time) (time.Time, error)
			want  string
		}{{Parse, tc.first}, {ParseEnd, tc.second}} {
			if got, err := end.parse(tc.in, now.In(berlin)); err != nil || got.UTC().Format(time.RFC3339) != end.want {
				t.Errorf("%s: %q is %s, %v, want %s", tc.why, tc.in, got.UTC(), err, end.want)
			}
		}
	}
	// A zone without changes.
	if got, err := Parse("10:42", time.Date(2026, 3, 1, 10, 45, 0, 0, time.FixedZone("X", 3600))); err != nil || got.UTC().Hour() != 9 {
		t.Error(got, err)
	}
}

// TestAge: an age is what Parse subtracts from now, in every form.
func TestAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "2w": 14 * day, " 3d  ago ": 3 * day, "1w1d12h": 204 * time.Hour, "now": 0, "0s": 0,
	} {
		if got, ok := Age(text); !ok || got != want {
			t.Errorf("%q: %v, %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "10:42", "today", "yesterday 10:42", "2026-11-21", "2026-11-21T10:00:00Z", "-3d", "ago", "now ago", "w"} {
		if got, ok := Age(text); ok {
			t.Errorf("%q is read as an age of %v", text, got)
		}
	}
}
