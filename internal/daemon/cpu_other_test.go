//go:build !unix

package daemon

import (
	"testing"
	"time"
)

var started = time.Now()

// cpu returns the elapsed time, for lack of CPU time.
func cpu(testing.TB) time.Duration { return time.Since(started) }
