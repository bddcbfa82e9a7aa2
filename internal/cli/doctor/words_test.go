package doctor

import (
	"testing"
	"time"
)

// TestBounds: a lower bound is rounded down, an upper bound up.
func TestBounds(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		1500 * time.Microsecond: {"1ms", "2ms"}, 36729 * time.Millisecond: {"36s", "37s"}, 5 * time.Minute: {"5m0s", "5m0s"},
		4*time.Hour - time.Minute: {"3h", "4h"}, 71 * time.Hour: {"2d", "3d"},
	} {
		if got := [2]string{span(d), upTo(d)}; got != want {
			t.Errorf("%v: %v, want %v", d, got, want)
		}
	}
}
