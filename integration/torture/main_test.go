// Package torture tests the promise of `tattler run` on a real control plane: every version that the server
// shows is journaled once and delivered at least once, although the daemon is killed at random, servers restart
// and forget, connections break, sinks misbehave and the disk fills.
//
// A separate watcher, which shares no code with the engine, records every version that the server shows it, and
// a judge compares. An observer between the daemon and the server notes the daemon's requests and the server's
// refusals, so that the judge excuses a gap only if an action on the server made it necessary.
// TATTLER_TORTURE_KILLS=1000 makes a long run; TATTLER_TORTURE_SEED repeats the choices of an earlier run, but
// not the timing of the servers.
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
	// keepEnv names a directory to which a failed run copies its files.
	keepEnv = "TATTLER_TORTURE_KEEP"
	// playEnv makes the test binary act as the command.
	playEnv = "TATTLER_TORTURE_PLAY"
)

// plane is the control plane of all tests, which run one after the other in separate namespaces.
var plane *devcluster.Cluster

var (
	kills = uint64(15)
	seed  uint64 // 0: each test has its own
)

func TestMain(m *testing.M) {
	if os.Getenv(playEnv) != "" {
		go func() { // the parent process is gone, so nothing else would end us
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

// chance returns a test's random numbers and logs how to repeat them.
func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := cmp.Or(seed, rand.Uint64N(1e9))
	t.Logf("%s=%d repeats the choices", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// pollInterval is the interval between two checks of a condition.
const pollInterval = 20 * time.Millisecond

// within waits until f returns nil. After limit it returns f's last error.
func within(ctx context.Context, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	return clustertest.Poll(ctx, pollInterval, f)
}

// pause lets time pass in which something may happen.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
