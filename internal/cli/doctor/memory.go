package doctor

import (
	"fmt"
	"os"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// What was measured of tattler run: docs/performance.md has 217 MiB for 100,000 pods at the first start; with hardly any
// object it takes 60 MiB.
const (
	baseMemory   = 60 << 20
	objectMemory = (217<<20 - baseMemory) / 100_000
)

// memory compares the limit of the daemon's memory, or of this process in its place, with what the objects will take.
func (x *examination) memory() {
	if x.objects < 0 {
		x.add(Memory, "limit", Note, "the memory that tattler run needs is unknown: the objects were not counted", "", "")
		return
	}
	expected := baseMemory + objectMemory*x.objects
	about := fmt.Sprintf("%s of memory for %s", volume(expected), terminal.Count(int(x.objects), "object"))
	pid, of := os.Getpid(), "this process"
	if x.status != nil {
		pid, of = x.status.PID, "the daemon"
	}
	limit, from := x.host.limit(pid)
	switch {
	case limit == 0:
		x.add(Memory, "limit", OK, fmt.Sprintf("expect about %s; %s has no limit here", about, of), "", "")
	case limit < expected:
		x.add(Memory, "limit", Error, fmt.Sprintf("the limit of %s is %s, less than the expected %s", of, volume(limit), about),
			"The daemon would be killed while it lists ("+from+"). The estimate is by pods of 7 KB.", "Raise the memory limit to "+volume(2*expected)+", or watch less.")
	case limit < expected*3/2:
		x.add(Memory, "limit", Warning, fmt.Sprintf("the limit of %s is %s, close to the expected %s", of, volume(limit), about),
			"A burst of changes or larger objects could exceed it ("+from+"). The estimate is by pods of 7 KB.", "Raise the memory limit to "+volume(2*expected)+".")
	default:
		x.add(Memory, "limit", OK, fmt.Sprintf("expect about %s; the limit of %s is %s", about, of, volume(limit)), "", "")
	}
}
