package report

import (
	"fmt"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// clean makes a text one line that cannot control the terminal.
func clean(text string) string { return terminal.Line(text) }

// columns returns the approximate width of a text.
func columns(text string) int { return utf8.RuneCountInString(text) }

// cut shortens a text.
func cut(text string, limit int) string {
	if columns(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// age formats a duration as kubectl does.
func age(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// stamp formats a time in the local time zone.
func stamp(t time.Time) string { return t.Local().Format(time.DateTime) }

// Count formats a number with a noun, whose plural has an s.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// size formats a number of bytes, in a unit that leaves at most four digits.
func size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/(1<<10), 0
	for ; f >= 1000 && unit < len(units)-1; unit++ {
		f /= 1 << 10
	}
	if f < 10 && f != float64(int(f)) {
		return fmt.Sprintf("%.1f %s", f, units[unit])
	}
	return fmt.Sprintf("%.0f %s", f, units[unit])
}

var units = []string{"KiB", "MiB", "GiB", "TiB"}
