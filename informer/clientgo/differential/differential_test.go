// Package differential runs client-go's shared informer and this module's side by side on one source, through random
// steps: observed and missed changes, failing lists and watches, handlers that join and leave, all kinds of reads.
// Everything that client-go's contract determines must be equal.
//
// CLIENTGO_SEEDS sets the number of seeds, CLIENTGO_SEED replays one.
package differential

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tattler-dev/tattler/internal/leaktest"
)

// steps is the number of steps in one run.
const steps = 60

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // failures are expected
	// The default handlers wait by the real clock, which is decades ahead of a bubble's.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}} //nolint:reassign // it is meant to be
	leaktest.Main(m)
}

// TestJudge compares client-go's informer with itself: differences here do not belong to its contract.
func TestJudge(t *testing.T) { run(t, 20, cache.NewSharedIndexInformer) }

// run plays the seeds.
func run(t *testing.T, many uint64, ours constructor) {
	first := uint64(time.Now().UnixNano())
	if seed, ok := number(t, "CLIENTGO_SEED"); ok {
		first, many = seed, 1
	} else if n, ok := number(t, "CLIENTGO_SEEDS"); ok {
		many = n
	}
	for seed := first; seed < first+many; seed++ {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, seed, ours) })
		}) {
			t.Fatalf("replay with CLIENTGO_SEED=%d", seed)
		}
	}
}

func number(t *testing.T, env string) (uint64, bool) {
	text, ok := os.LookupEnv(env)
	if !ok || text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n, true
}

func play(t *testing.T, seed uint64, ours constructor) {
	w := newWorld(t, seed, ours)
	defer func() {
		if t.Failed() { // a bubble ends only when all of its goroutines have
			w.refuse(nil)
			w.stop()
		}
	}()
	w.begin()
	for range steps {
		w.step()
	}
	w.end()
}
