package peer

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
)

// handlers is the number of handlers.
const handlers = 10

// counter is a handler that reads its objects and counts its calls.
type counter struct {
	old                     bool // reads the old object of an update, too
	updates, births, deaths atomic.Int64
	read                    atomic.Int64 // keeps the compiler from removing the reads
	updated                 atomic.Pointer[corev1.Pod]
}

func (c *counter) look(obj any) {
	if p, ok := obj.(*corev1.Pod); ok {
		c.read.Add(int64(len(p.Name) + len(p.Status.Phase) + len(p.Spec.NodeName)))
	}
}

// heard reports whether the newest update has a version.
func (c *counter) heard(version string) bool {
	p := c.updated.Load()
	return p != nil && p.ResourceVersion == version
}

func (c *counter) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.look(obj); c.births.Add(1) },
		UpdateFunc: func(old, obj any) {
			c.look(obj)
			if c.old {
				c.look(old)
			}
			c.updates.Add(1)
			if p, ok := obj.(*corev1.Pod); ok {
				c.updated.Store(p)
			}
		},
		DeleteFunc: func(obj any) { c.look(obj); c.deaths.Add(1) },
	}
}

// events measures the throughput of events to ten handlers that read the new objects, or also the old ones.
func events(old bool) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) { return hear(ctx, in, old) }
}

func hear(ctx context.Context, in harness.Input, old bool) (harness.Sample, error) {
	inf, err := typed(in.Server)
	if err != nil {
		return nil, err
	}
	counters := make([]counter, handlers)
	for i := range counters {
		counters[i].old = old
		if _, err := inf.AddEventHandler(counters[i].handler()); err != nil {
			return nil, fmt.Errorf("add handler: %w", err)
		}
	}
	if err := inf.sync(ctx); err != nil {
		return nil, err
	}
	quiet := func() bool { return counters[handlers-1].births.Load() == int64(inf.want) }
	if err := harness.Wait(ctx, quiet); err != nil {
		return nil, fmt.Errorf("hear of the first objects: %w", err)
	}
	m := harness.NewMeter()
	if _, err := synth.NewControl(in.Server.Control).Update(ctx, in.Events, in.Server.Objects); err != nil {
		return nil, err
	}
	err = harness.Wait(ctx, func() bool {
		for i := range counters {
			if counters[i].updates.Load() < int64(in.Events) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("hear of the updates: %w", err)
	}
	m.Lap("events")
	m.Set("sent", float64(in.Events))
	m.Set("heard", float64(in.Events))
	m.Memory("after")
	runtime.KeepAlive(inf)
	return m.Sample(), nil
}

// Unbounded growth is measured with few events and extrapolated: a million would need tens of gigabytes.
const (
	fewUpdates = 100_000
	fewBirths  = 50_000
)

// stuck measures the cost of a handler that does not return from its first call, while pods are
// updated, or are created and deleted: "events" is their number, "growth B" the growth of the heap.
func stuck(churn bool) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		inf, err := typed(in.Server)
		if err != nil {
			return nil, err
		}
		release := make(chan struct{})
		defer close(release)
		stop := func(any) { <-release }
		_, err = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: stop, UpdateFunc: func(_, o any) { stop(o) }, DeleteFunc: stop})
		if err != nil {
			return nil, fmt.Errorf("add handler: %w", err)
		}
		var seen counter
		if _, err := inf.AddEventHandler(seen.handler()); err != nil {
			return nil, fmt.Errorf("add handler: %w", err)
		}
		if err := inf.sync(ctx); err != nil {
			return nil, err
		}
		if err := harness.Wait(ctx, func() bool { return seen.births.Load() == int64(inf.want) }); err != nil {
			return nil, fmt.Errorf("hear of the first objects: %w", err)
		}
		m := harness.NewMeter()
		done, n := seen.updates.Load, min(in.Events, fewUpdates)
		control := synth.NewControl(in.Server.Control)
		if churn {
			done, n = seen.deaths.Load, min(in.Events, fewBirths)
			_, err = control.Churn(ctx, n)
		} else {
			_, err = control.Update(ctx, n, in.Server.Objects)
		}
		if err != nil {
			return nil, err
		}
		version, err := control.Update(ctx, 1, 1) // a watch that fell behind may have lost earlier events
		if err != nil {
			return nil, err
		}
		if err := harness.Wait(ctx, func() bool { return seen.heard(version) }); err != nil {
			return nil, fmt.Errorf("hear of the events: %w", err)
		}
		if done() < int64(n)/2 {
			return nil, fmt.Errorf("only %d of %d events arrived", done(), n)
		}
		m.Set("events", float64(done()))
		m.Set("growth B", m.Heap())
		m.Lap("stuck")
		runtime.KeepAlive(inf)
		return m.Sample(), nil
	}
}

// relist makes the server drop its history and waits until the informer has listed again.
func relist(ctx context.Context, in harness.Input, inf informer) error {
	before := inf.LastSyncResourceVersion()
	if err := synth.NewControl(in.Server.Control).Expire(ctx); err != nil {
		return err
	}
	if err := harness.Wait(ctx, func() bool { return inf.LastSyncResourceVersion() != before }); err != nil {
		return fmt.Errorf("list again: %w", err)
	}
	return nil
}

// relistHeap measures the live heap during a relist.
func relistHeap(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	inf, err := typed(in.Server)
	if err != nil {
		return nil, err
	}
	if err := inf.sync(ctx); err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	m.Set("steady heap B", m.Heap())
	peak := m.WatchHeap()
	err = relist(ctx, in, inf)
	m.Set("peak heap B", peak.End())
	if err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	m.Set("after heap B", m.Heap())
	runtime.KeepAlive(inf)
	return m.Sample(), nil
}

// relistRSS measures the resident memory during a relist.
func relistRSS(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	inf, err := typed(in.Server)
	if err != nil {
		return nil, err
	}
	if err := inf.sync(ctx); err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	steady, err := harness.TrimRSS()
	if err != nil {
		return nil, err
	}
	m.Set("steady rss B", steady)
	if err := relist(ctx, in, inf); err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	m.Set("peak rss B", harness.PeakRSS())
	m.Set("growth B", harness.PeakRSS()-steady)
	runtime.KeepAlive(inf)
	return m.Sample(), nil
}
