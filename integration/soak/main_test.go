// Package soak proves package informer on a real control plane, which restarts, forgets and loses
// connections while thousands of objects change.
//
// TATTLER_SOAK=20000 makes that many pods instead of 600, and a long run: more faults, repeated.
// TATTLER_SEED repeats the choices of a former run, though not the timing of the servers.
package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	sizeEnv = "TATTLER_SOAK"
	seedEnv = "TATTLER_SEED"
)

// here is what every test uses, one after the other. The objects stay from test to test.
var here *world

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	size, err := number(sizeEnv, 600)
	if err != nil {
		return complain(err)
	}
	seed, err := number(seedEnv, rand.Uint64N(1e9))
	if err != nil {
		return complain(err)
	}
	fmt.Fprintf(os.Stderr, "soak: %d pods, %s=%d\n", size, seedEnv, seed)
	// client-go pings a silent HTTP/2 connection after these; by default a stalled one would take 45 s.
	for _, env := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		if err := os.Setenv(env, "2"); err != nil {
			return complain(err)
		}
	}

	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // cold, it is built first
	defer cancel()
	here, err = newWorld(ctx, int(size), seed)
	if err != nil {
		return complain(err)
	}
	code := m.Run()
	if err := here.Stop(); err != nil {
		return complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "soak:", err)
	return 1
}

func number(env string, otherwise uint64) (uint64, error) {
	text := os.Getenv(env)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", env, err)
	}
	return n, nil
}

// poll waits until f returns nil, whose last error it returns when ctx ends.
func poll(ctx context.Context, every time.Duration, f func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// pause waits between two attempts.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}
