// Command loop is a job whose instructions are known, for a test of counters. It is built without the race detector.
package main

import (
	"context"
	"os"

	"github.com/tattler-dev/tattler/bench/harness"
)

func main() {
	harness.Main([]harness.Job{{Name: "loop", Run: func(_ context.Context, in harness.Input) (harness.Sample, error) {
		spin(1_000_000) // not counted
		return nil, in.Count(func() error { spin(in.Events); return nil })
	}}}, nil)
	os.Exit(1)
}

// spin takes some instructions for each of n.
//
//go:noinline
func spin(n int) (sum int) {
	for i := range n {
		sum += i * i
	}
	return sum
}
