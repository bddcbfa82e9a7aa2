package deliver_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// counted is a store that counts its reads: those that yield something, and those that are open.
type counted struct {
	*sinktest.Store
	fruitful, open atomic.Int64
}

func (c *counted) Read(ctx context.Context, after int64) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		c.open.Add(1)
		defer c.open.Add(-1)
		first := true
		for item, err := range c.Store.Read(ctx, after) {
			if first {
				c.fruitful.Add(1)
			}
			first = false
			if !yield(item, err) {
				return
			}
		}
	}
}

// TestReadOnce: many batches take one read of the store, and no read stays open while unused.
func TestReadOnce(t *testing.T) {
	for _, tc := range []struct {
		why    string
		fourth func(r *rig) error // the outcome of the fourth batch of 100
		want   int64              // reads
	}{
		{"all is taken", func(*rig) error { return nil }, 1},
		{"the sink fails", func(*rig) error { return errDown }, 2},
		{"the sink is paused", func(r *rig) error { r.pump.Pause(); return nil }, 2},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &counted{}
				r := newRig(t, 1000, deliver.Options{})
				c.Store, r.o.Store = r.store, c
				batches := 0
				r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
					if batches++; batches == 4 {
						if err := tc.fourth(r); err != nil {
							return 0, err
						}
					}
					return len(ms), nil
				}
				r.start() // until all is accepted, or the pump waits
				if got := c.open.Load(); got != 0 {
					t.Errorf("%d readings are open while nothing is read", got)
				}
				r.pump.Resume()
				synctest.Wait()
				if got := r.sink.count(); got != 1000 {
					t.Errorf("%d of 1000 changes arrived", got)
				}
				if got := c.fruitful.Load(); got != tc.want {
					t.Errorf("the store was read %d times, want %d", got, tc.want)
				}
				r.stop()
				if got := c.open.Load(); got != 0 {
					t.Errorf("%d readings are open at the end", got)
				}
			})
		})
	}
}
