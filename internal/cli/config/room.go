package config

import (
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/config"
)

// What was measured of journals: about how many bytes the last state of an object takes, and a change, from a
// heartbeat to an update of several fields.
const (
	stateSize   = 2 << 10
	leastChange = 70
	mostChange  = 300
	// floorShare is the share of its limit that the journal keeps for changes in any case.
	floorShare = 4
)

// room estimates what the journal's limit holds.
func (r *report) room(kinds []finding) {
	limit, age := int64(r.setup.Journal.Retain.Size), r.setup.Journal.Retain.Age
	objects, about := int64(0), "about"
	for _, k := range kinds {
		objects += k.objects
		if k.more || k.unknown != nil {
			about = "at least"
		}
	}
	states := objects * stateSize
	left := max(limit-states, limit/floorShare)
	text := fmt.Sprintf("Room: %s for the last states of %s; what is left of %s holds %s to %s changes",
		about+" "+volume(states), count(int(objects), "object"), config.Size(limit), number(left/mostChange), number(left/leastChange))
	if age > 0 {
		text += fmt.Sprintf(", which is %s of %s to %s a second", span(age), rate(left/mostChange, age), rate(left/leastChange, age))
	}
	r.line("%s", text)
	if states >= limit/2 {
		r.warn("journal.retain.size: the last states take half of it or more, %s: the history gets what they leave, and a quarter at least; make it larger, or watch less", about+" "+volume(states))
	}
}

// span is a time that people read: 30d, 36h, 90m0s.
func span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return d.String()
}

// volume is a number of bytes that people read.
func volume(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return rounded(float64(n)/(1<<20)) + " MiB"
}

// number is a number that people read.
func number(n int64) string {
	switch {
	case n >= 1_000_000:
		return rounded(float64(n)/1e6) + " million"
	case n >= 1000:
		return rounded(float64(n)/1e3) + " thousand"
	default:
		return fmt.Sprint(n)
	}
}

func rate(n int64, in time.Duration) string { return rounded(float64(n) / in.Seconds()) }

func rounded(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.0f", v)
}
