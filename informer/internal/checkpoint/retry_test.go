package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// TestGarbage updates one object until the file is rewritten, twice: while the stream is live, and during a
// first list that does not end.
func TestGarbage(t *testing.T) {
	for _, phase := range []store.Phase{store.Live, store.Listing} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.stream.minFile, b.stream.maxBuffer = 2000, 100
			name := b.stream.file
			if phase == store.Listing {
				name += unfinished
			}
			rng := rand.New(rand.NewPCG(1, 2))
			var mu sync.Mutex
			now, keep := b.version("100"), b.version("99")
			b.opts.Subscribe = func() (Queue, error) {
				mu.Lock()
				defer mu.Unlock()
				b.opened++
				b.batches = make(chan store.Batch, 1)
				b.batches <- store.Batch{Epoch: 1, Phase: phase, Version: now.RV(), Deltas: []store.Delta{added("a", now), added("keep", keep)}}
				return handQueue{b.batches}, nil
			}
			b.start()
			largest := 0
			for i := range 300 {
				v := b.packer.Pack(wire.JSON, "u", fmt.Sprint(101+i), fmt.Appendf(nil, "%d %x", i, rng.Uint64()))
				old := now
				mu.Lock()
				now = v
				mu.Unlock()
				b.send(phase, v.RV(), updated("a", old, v))
				time.Sleep(time.Second)
				synctest.Wait()
				largest = max(largest, len(b.disk.names[name].data))
			}
			if b.opened < 4 || b.opened > 30 || largest > 2000 || largest < 1000 {
				t.Errorf("%v: rewritten %d times, the largest had %d bytes", phase, b.opened-1, largest)
			}
			b.send(store.Live, "500")
			if got, want := describe(b.end()), "live 500: a@400 keep@99"; got != want {
				t.Errorf("%v: got %s, want %s", phase, got, want)
			}
		})
	}
}

// TestRetry: after a write error Run retries with growing delays.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var tries []int
		began := time.Now()
		b.opts.Report = func(err error) {
			b.reports = append(b.reports, err)
			tries = append(tries, int(time.Since(began)/time.Second))
			b.disk.failAt = b.disk.ops + 1
			if len(tries) == 9 {
				b.disk.failAt = 0
			}
		}
		b.disk.failAt = 1
		b.start()
		time.Sleep(10 * time.Minute)
		b.send(store.Live, "7")
		want := []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 600}
		if !slices.Equal(tries, want) {
			t.Errorf("tried after %v seconds, want %v", tries, want)
		}
		for i, err := range b.reports {
			if i < 9 && !errors.Is(err, errInjected) || i == 9 && err != nil {
				t.Errorf("report %d: %v", i, err)
			}
		}
		b.end()
	})
}

func TestSubscribeEndsRun(t *testing.T) {
	b := newBench(t)
	closed := errors.New("the source is closed")
	b.opts.Subscribe = func() (Queue, error) { return nil, closed }
	if err := b.stream.Run(t.Context(), b.opts); !errors.Is(err, closed) {
		t.Errorf("got %v", err)
	}
}

// TestStopWhileBusy: a stream that never becomes idle does not keep Run from ending.
func TestStopWhileBusy(t *testing.T) {
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	batches := 0
	b.opts.Subscribe = func() (Queue, error) {
		return queueFunc(func(context.Context) (store.Batch, error) {
			if batches++; batches == 100 {
				stop()
			}
			return store.Batch{Epoch: 1, Phase: store.Live, Version: fmt.Sprint(1000 + batches)}, nil
		}), nil
	}
	if err := b.stream.Run(ctx, b.opts); err != nil {
		t.Fatal(err)
	}
	b.wants("live 1101:")
}
