//go:build !unix

package decode

import "time"

var start = time.Now()

// cpuTime returns the elapsed time, for lack of CPU time.
func cpuTime() time.Duration { return time.Since(start) }
