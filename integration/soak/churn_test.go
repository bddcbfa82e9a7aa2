package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// churn is many hands that write until they are stopped, whether the server is available or not.
type churn struct {
	world *world
	taken atomic.Int64 // writes accepted by the server
	stop  func()       // returns once the last write was answered or abandoned
}

// churn starts hands whose choices follow from the world's seed and a number for the occasion.
func (w *world) churn(ctx context.Context, occasion uint64) *churn {
	ctx, cancel := context.WithCancel(ctx)
	c := &churn{world: w}
	pace := flowcontrol.NewTokenBucketRateLimiter(min(max(50, float32(w.size)/40), fastest), writers)
	var wg sync.WaitGroup
	for i := range uint64(writers) {
		h := &hand{world: w, rng: rand.New(rand.NewPCG(w.seed, occasion<<8|i))}
		wg.Go(func() {
			for pace.Wait(ctx) == nil {
				switch err := h.randomWrite(ctx); {
				case err == nil:
					c.taken.Add(1)
				case !isRefusal(err):
					pause(ctx) // the server is away
				}
			}
		})
	}
	c.stop = func() {
		cancel()
		wg.Wait()
	}
	return c
}

// some waits until the server has accepted n more writes.
func (c *churn) some(ctx context.Context, n int64) error {
	until := c.taken.Load() + n
	return clustertest.Poll(ctx, 20*time.Millisecond, func() error {
		if left := until - c.taken.Load(); left > 0 {
			return fmt.Errorf("%d more writes must be accepted", left)
		}
		return nil
	})
}

// randomWrite makes a random write. A few objects are hot.
func (h *hand) randomWrite(ctx context.Context) error {
	n := h.rng.IntN(h.size)
	if h.rng.IntN(4) == 0 {
		n = h.rng.IntN(min(h.size, 20))
	}
	o := h.pod(n)
	if h.rng.IntN(6) == 0 {
		o = h.widget(n / widgetShare)
	}
	switch roll := h.rng.IntN(100); {
	case roll < 45:
		return h.status(ctx, o)
	case roll < 65:
		return h.flip(ctx, o)
	case roll < 75:
		return h.touch(ctx, o)
	case roll < 80:
		return h.delete(ctx, o)
	case roll < 87: // recreate it with another UID
		if err := h.delete(ctx, o); err != nil && !isRefusal(err) {
			return err
		}
		return h.create(ctx, o)
	case roll < 96:
		return h.create(ctx, o) // if it does not exist
	}
	return h.blip(ctx, o)
}

// blip creates an object whose name is never reused, and deletes it.
func (h *hand) blip(ctx context.Context, like object) error {
	like.Name = "blip-" + h.hex(12)
	err := h.create(ctx, like)
	if err != nil && isRefusal(err) {
		return err
	}
	for ctx.Err() == nil { // it must not stay
		err := h.delete(ctx, like)
		if err == nil || isRefusal(err) {
			return err
		}
		pause(ctx)
	}
	return ctx.Err()
}

// burst makes many writes at once; each hand writes one object.
func (w *world) burst(ctx context.Context, writes int) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	for i := range 2 * writers {
		h := &hand{world: w, rng: rand.New(rand.NewPCG(w.seed, 1<<32|uint64(i)))}
		wg.Go(func() {
			for int(next.Add(1)) <= writes && ctx.Err() == nil {
				_ = h.touch(ctx, w.pod(i)) // the ledger knows whether it was accepted
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
