//go:build !unix

package decode

import "time"

var start = time.Now()

// cpuTime is only the time that passed.
func cpuTime() time.Duration { return time.Since(start) }
