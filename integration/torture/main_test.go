// Package torture proves the promise of `tattler run` on a real control plane: what the server shows is
// journaled once and delivered at least once, though the daemon is killed at random, servers restart and
// forget, connections break, sinks misbehave and the disk fills.
//
// A witness of its own, which shares no code with the engine, records every version that the server shows
// it; a judge compares. TATTLER_TORTURE_KILLS=1000 makes it long; TATTLER_TORTURE_SEED repeats the choices
// of a former run, though not the timing of the servers.
package torture

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/internal/cli"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

const (
	killsEnv = "TATTLER_TORTURE_KILLS"
	seedEnv  = "TATTLER_TORTURE_SEED"
	// keepEnv names a directory to which a failed run copies what it left behind.
	keepEnv = "TATTLER_TORTURE_KEEP"
	// playEnv makes the test binary the command.
	playEnv = "TATTLER_TORTURE_PLAY"
)

// plane is the control plane of all tests, which run one after the other, each in namespaces of its own.
var plane *devcluster.Cluster

func TestMain(m *testing.M) {
	if os.Getenv(playEnv) != "" {
		go func() { // who started us is gone, and nobody else would end us
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		os.Exit(cli.Main(kinds.Tattler()))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // cold, it is built first
	defer cancel()
	var err error
	if plane, err = devcluster.Start(ctx, devcluster.Options{Out: os.Stderr}); err != nil {
		return complain(err)
	}
	code := 1
	if err := prepare(ctx); err != nil {
		complain(err)
	} else {
		code = m.Run()
	}
	if err := plane.Stop(); err != nil {
		return complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "torture:", err)
	return 1
}

// number reads an environment variable.
func number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("read %s: %v", env, err)
	}
	return n
}

// chance is what a test makes its choices with, and says how to repeat them.
func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := number(t, seedEnv, rand.Uint64N(1e9))
	t.Logf("%s=%d repeats the choices", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// poll waits until f returns nil, whose last error it returns when ctx ends.
func poll(ctx context.Context, f func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
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

// within is poll with a limit of its own.
func within(ctx context.Context, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	return poll(ctx, f)
}

// rest lets some time go by: the time in which something may happen.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
