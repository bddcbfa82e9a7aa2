// Package torture proves the promise of `tattler run` on a real control plane: what the server shows is
// journaled once and delivered at least once, though the daemon is killed at random, servers restart and
// forget, connections break, sinks misbehave and the disk fills.
//
// A witness of its own, which shares no code with the engine, records every version that the server shows
// it; a judge compares. An observer between the daemon and the server notes what the daemon asked and what the
// server refused, so that the judge forgives a gap only where something that was done to the server made it
// necessary. TATTLER_TORTURE_KILLS=1000 makes it long; TATTLER_TORTURE_SEED repeats the choices
// of a former run, though not the timing of the servers.
package torture

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/internal/cli"
	sinkkinds "github.com/tattler-dev/tattler/internal/sink/kinds"
)

const (
	seedEnv = "TATTLER_TORTURE_SEED"
	// keepEnv names a directory to which a failed run copies what it left behind.
	keepEnv = "TATTLER_TORTURE_KEEP"
	// playEnv makes the test binary the command.
	playEnv = "TATTLER_TORTURE_PLAY"
)

// plane is the control plane of all tests, which run one after the other, each in namespaces of its own.
var plane *devcluster.Cluster

var (
	kills = uint64(15)
	seed  uint64 // 0: each test has its own
)

func TestMain(m *testing.M) {
	if os.Getenv(playEnv) != "" {
		go func() { // who started us is gone, and nobody else would end us
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		os.Exit(cli.Main(sinkkinds.Tattler()))
	}
	os.Exit(clustertest.Main(m, clustertest.Options{
		Numbers: map[string]*uint64{"TATTLER_TORTURE_KILLS": &kills, seedEnv: &seed},
		Begin: func(ctx context.Context, c *devcluster.Cluster) error {
			plane = c
			return prepare(ctx)
		},
	}))
}

// chance is what a test makes its choices with, and says how to repeat them.
func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := cmp.Or(seed, rand.Uint64N(1e9))
	t.Logf("%s=%d repeats the choices", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// often is how long it takes until something is looked at again.
const often = 20 * time.Millisecond

// within waits until f returns nil, whose last error it returns after the limit.
func within(ctx context.Context, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	return clustertest.Poll(ctx, often, f)
}

// rest lets some time go by: the time in which something may happen.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
