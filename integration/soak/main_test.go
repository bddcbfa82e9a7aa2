// Package soak tests package informer on a real control plane that restarts, compacts its history and loses
// connections while thousands of objects change.
//
// TATTLER_SOAK=20000 creates that many pods instead of 600 and makes a long run: more faults, repeated.
// TATTLER_SEED repeats the choices of an earlier run, but not the timing of the servers.
package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// here is shared by all tests, one after the other. The objects stay from test to test.
var here *world

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := keep(dir); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			os.Exit(1)
		}
		return
	}
	size, seed := uint64(600), rand.Uint64N(1e9)
	os.Exit(clustertest.Main(m, clustertest.Options{
		Cluster:      devcluster.Options{APIServerArgs: []string{"--runtime-config=api/all=true"}}, // as many kinds as possible
		PodsAnywhere: true,
		FastPings:    true,
		Numbers:      map[string]*uint64{"TATTLER_SOAK": &size, "TATTLER_SEED": &seed},
		Begin: func(ctx context.Context, c *devcluster.Cluster) (err error) {
			here, err = newWorld(ctx, c, int(size), seed)
			return err
		},
	}))
}

// pause waits between two attempts.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}
