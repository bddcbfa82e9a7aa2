// Package differential runs client-go's shared informer and this module's side by side, on one source, through
// random steps: changes that are told and changes that are missed, failing lists and watches, handlers that come
// and go, reads of every kind. Whatever client-go's contract determines must be equal.
//
// CLIENTGO_SEEDS is how many seeds are run, CLIENTGO_SEED replays one.
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

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// steps is how many there are in one run.
const steps = 60

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // failures are what is tested
	// The handlers that are there by default wait, by a clock that a bubble's is behind by decades.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}} //nolint:reassign // it is meant to be
	goleak.VerifyTestMain(m)
}

// TestJudge lets client-go's informer judge client-go's: what differs here is no part of its contract.
func TestJudge(t *testing.T) { run(t, 20, cache.NewSharedIndexInformer) }

// run plays seeds, of which there are many unless others are asked for.
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
		if t.Failed() { // the bubble ends when all in it have
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
