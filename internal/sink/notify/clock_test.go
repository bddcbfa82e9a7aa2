package notify

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestDue(t *testing.T) {
	berlin := must(time.LoadLocation("Europe/Berlin"))(t)
	night := QuietHours{From: clock("22:00"), To: clock("07:00")}
	for _, tc := range []struct {
		why               string
		s                 schedule
		taken, seen, want string // in Berlin; an empty seen equals taken
	}{
		{"a window", schedule{window: time.Minute}, "2026-11-21 10:00", "", "2026-11-21 10:01"},
		{"before the digest", schedule{digest: clock("08:00")}, "2026-11-21 07:59", "", "2026-11-21 08:00"},
		{"after it, the next day's", schedule{digest: clock("08:00")}, "2026-11-21 08:00", "", "2026-11-22 08:00"},
		{"over the end of a month", schedule{digest: clock("08:00")}, "2026-11-30 09:00", "", "2026-12-01 08:00"},
		{"a missed digest is due soon", schedule{window: time.Minute, digest: clock("08:00")}, "2026-11-21 10:00", "2026-11-20 23:00", "2026-11-21 10:01"},
		{"another one is due in time", schedule{window: time.Minute, digest: clock("08:00")}, "2026-11-21 07:00", "2026-11-20 23:00", "2026-11-21 08:00"},
		{"before quiet hours", schedule{quiet: night}, "2026-11-21 21:59", "", "2026-11-21 21:59"},
		{"a window that ends in them", schedule{window: time.Minute, quiet: night}, "2026-11-21 21:59", "", "2026-11-22 07:00"},
		{"in them, before midnight", schedule{quiet: night}, "2026-11-21 23:00", "", "2026-11-22 07:00"},
		{"after midnight", schedule{quiet: night}, "2026-11-22 06:59", "", "2026-11-22 07:00"},
		{"their end", schedule{quiet: night}, "2026-11-22 07:00", "", "2026-11-22 07:00"},
		{"quiet hours of a day", schedule{quiet: QuietHours{From: clock("12:00"), To: clock("13:00")}}, "2026-11-21 12:30", "", "2026-11-21 13:00"},
		{"a digest in quiet hours", schedule{digest: clock("06:00"), quiet: night}, "2026-11-21 10:00", "", "2026-11-22 07:00"},
		{"when the clocks go back, the morning is the morning", schedule{quiet: night}, "2026-10-24 23:00", "", "2026-10-25 07:00"},
		{"and forth", schedule{digest: clock("08:00")}, "2026-03-28 09:00", "", "2026-03-29 08:00"},
	} {
		at := func(text string) time.Time { return must(time.ParseInLocation("2006-01-02 15:04", text, berlin))(t) }
		tc.s.zone = berlin
		taken := at(tc.taken)
		seen := taken
		if tc.seen != "" {
			seen = at(tc.seen)
		}
		// Times come in UTC.
		if got := tc.s.due(taken.UTC(), seen.UTC()); !got.Equal(at(tc.want)) {
			t.Errorf("%s: %s, want %s", tc.why, got.In(berlin), tc.want)
		}
	}
}

// TestQuietWhenItIsDue checks that what could not be sent before the quiet hours is not sent during them.
func TestQuietWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // starts at midnight UTC
		s := must(New("tattler/test", Options{
			URL: "mattermost://127.0.0.1/token", Window: time.Minute, Timezone: "UTC", QuietHours: QuietHours{From: "22:00", To: "07:00"},
		}))(t)
		time.Sleep(21*time.Hour + 58*time.Minute)
		if n, err := s.Send(t.Context(), sinktest.Messages(0, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "01 21:59"}, {59 * time.Second, "01 21:59"}, {time.Second, "01 21:59"}, {4 * time.Hour, "02 07:00"}, {6 * time.Hour, "01 21:59"}} {
			time.Sleep(step.after)
			if got := s.Due().UTC().Format("02 15:04"); got != step.want {
				t.Errorf("at %s it is due at %s, want %s", time.Now().UTC().Format("02 15:04:05"), got, step.want)
			}
		}
	})
}

func TestClock(t *testing.T) {
	for text, ok := range map[string]bool{"08:00": true, "00:00": true, "23:59": true, "8:00": false, "24:00": false, "08:60": false, "": false, "08:00:00": false} {
		var c Clock
		if err := c.UnmarshalText([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestOncePerDay: if a digest's time occurs twice on a day, or not at all, the digest is sent once that day.
func TestOncePerDay(t *testing.T) {
	zone := must(time.LoadLocation("America/New_York"))(t)
	for digest, day := range map[Clock]time.Time{
		"01:30": time.Date(2026, 11, 1, 0, 0, 0, 0, zone), // the clocks go back at 02:00
		"02:30": time.Date(2027, 3, 14, 0, 0, 0, 0, zone), // and forward at 02:00
	} {
		s := schedule{digest: digest, zone: zone}
		sent := map[string]map[time.Time]bool{}
		for at := day.Add(-12 * time.Hour); at.Before(day.Add(36 * time.Hour)); at = at.Add(5 * time.Minute) {
			due := s.due(at, at)
			if due.Before(at) || due.Sub(at) > 25*time.Hour {
				t.Errorf("digest %s: at %s it is due at %s", digest, at, due)
			}
			date := due.In(zone).Format(time.DateOnly)
			if sent[date] == nil {
				sent[date] = map[time.Time]bool{}
			}
			sent[date][due.UTC()] = true
		}
		for date, times := range sent {
			if len(times) != 1 {
				t.Errorf("digest %s on %s: %v", digest, date, times)
			}
		}
	}
}
