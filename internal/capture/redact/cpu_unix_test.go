//go:build unix

package redact

import (
	"syscall"
	"testing"
	"time"
)

// cpu returns the CPU time of the process. On a machine with other programs, it says more about a cost than a clock.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
