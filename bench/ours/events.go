package ours

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/informer"
)

// subscribers is the number of subscribers.
const subscribers = 10

// consumer is a kind of subscriber.
type consumer struct {
	mode   informer.Mode
	shared bool
	// objects means that it reads the new object, not only the key; old, that it reads the old object, too.
	objects, old bool
	// handle means that it calls handlers, as Informer.Handle does.
	handle bool
}

// consumers are the measured kinds of subscribers.
var consumers = map[string]consumer{
	"keys":          {},
	"shared":        {shared: true, objects: true},
	"both":          {shared: true, objects: true, old: true},
	"handle":        {shared: true, objects: true, old: true, handle: true},
	"copies":        {objects: true},
	"handle-copies": {objects: true, old: true, handle: true},
	"every":         {mode: informer.Every, shared: true, objects: true},
}

// listener is a subscriber that reads its changes and counts them.
type listener struct {
	consumer
	sub  *informer.Subscription[*corev1.Pod]
	seen atomic.Uint64 // the highest version
	done chan error
	// heard counts changes after the initial state, gaps those that were not delivered one by one.
	heard, gaps, read int64
}

// listen starts a listener.
func listen(ctx context.Context, pods *informer.Informer[*corev1.Pod], c consumer) (*listener, error) {
	if c.shared {
		pods = pods.Shared()
	}
	sub, err := pods.Subscribe("benchmark", informer.SubscribeOptions{Mode: c.mode})
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	l := &listener{consumer: c, sub: sub, done: make(chan error, 1)}
	if c.handle {
		go func() { l.done <- l.handling(ctx) }()
	} else {
		go func() { l.done <- l.run(ctx) }()
	}
	return l, nil
}

// run reads changes until finish.
func (l *listener) run(ctx context.Context) error {
	for {
		c, err := l.sub.Next(ctx)
		if errors.Is(err, informer.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read change: %w", err)
		}
		if err := l.look(c); err != nil {
			return err
		}
		version, err := strconv.ParseUint(c.ResourceVersion(), 10, 64)
		if err == nil && version > l.seen.Load() { // a deletion has no version
			l.seen.Store(version)
		}
	}
}

// handling calls handlers that read their arguments, until finish.
func (l *listener) handling(ctx context.Context) error {
	var failed error
	read := func(p *corev1.Pod) {
		l.read += int64(len(p.Name) + len(p.Status.Phase) + len(p.Spec.NodeName))
		version, err := strconv.ParseUint(p.ResourceVersion, 10, 64)
		if err == nil && version > l.seen.Load() {
			l.seen.Store(version)
		}
	}
	err := l.sub.Handle(ctx, informer.Handlers[*corev1.Pod]{
		OnAdd: func(p *corev1.Pod, _ bool) { read(p) },
		OnUpdate: func(old, p *corev1.Pod) {
			l.heard++
			read(old)
			read(p)
		},
		OnDelete: read,
		OnError:  func(_ informer.Key, err error) { failed = err },
	})
	if !errors.Is(err, informer.ErrClosed) {
		return err
	}
	return failed
}

// finish waits until the listener has seen the last event and its queue is empty. It may have seen the event
// before the caller knows that it is the last.
func (l *listener) finish(ctx context.Context, last string) error {
	version, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		return fmt.Errorf("read last version: %w", err)
	}
	var ended error
	over := func() bool {
		select {
		case ended = <-l.done:
			return true
		default:
			return l.seen.Load() >= version && l.sub.Lag().Objects == 0
		}
	}
	if err := harness.Wait(ctx, over); err != nil {
		return fmt.Errorf("hear of the last event: %w", err)
	}
	if ended != nil {
		return ended
	}
	l.sub.Stop()
	return <-l.done
}

// look processes a change as this kind of subscriber does.
func (l *listener) look(c *informer.Change[*corev1.Pod]) error {
	if c.Op == informer.Gapped {
		l.gaps++
		return nil
	}
	if !c.Initial {
		l.heard++
	}
	l.read += int64(len(c.Key.Name))
	if !l.objects {
		return nil
	}
	objects := []func() (*corev1.Pod, error){c.New}
	if l.old {
		objects = append(objects, c.Old)
	}
	for _, object := range objects {
		p, err := object()
		if err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		if p != nil {
			l.read += int64(len(p.Name) + len(p.Status.Phase) + len(p.Spec.NodeName))
		}
	}
	return nil
}

// events measures the throughput of events to ten subscribers.
func events(c consumer) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		s, pods, err := open(ctx, in)
		if err != nil {
			return nil, err
		}
		listeners := make([]*listener, subscribers)
		for i := range listeners {
			if listeners[i], err = listen(ctx, pods, c); err != nil {
				return nil, err
			}
		}
		for _, l := range listeners {
			select {
			case <-l.sub.Synced():
			case <-ctx.Done():
				return nil, fmt.Errorf("receive the first objects: %w", context.Cause(ctx))
			}
		}
		m := harness.NewMeter()
		version, err := synth.NewControl(in.Server.Control).Update(ctx, in.Events, in.Server.Objects)
		if err != nil {
			return nil, err
		}
		heard, gaps := int64(0), int64(0)
		for _, l := range listeners {
			if err := l.finish(ctx, version); err != nil {
				return nil, err
			}
			heard, gaps = heard+l.heard, gaps+l.gaps
		}
		m.Lap("events")
		m.Set("sent", float64(in.Events))
		m.Set("heard", float64(heard)/subscribers)
		m.Set("gaps", float64(gaps))
		m.Memory("after")
		runtime.KeepAlive(pods)
		return m.Sample(), s.stop(ctx)
	}
}

// stuck measures the cost of a subscriber that never returns from its first change, while pods
// are updated, or are created and deleted.
func stuck(churn bool) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		s, pods, err := open(ctx, in)
		if err != nil {
			return nil, err
		}
		sub, err := pods.Subscribe("stuck", informer.SubscribeOptions{})
		if err != nil {
			return nil, fmt.Errorf("subscribe: %w", err)
		}
		if _, err := sub.Next(ctx); err != nil {
			return nil, fmt.Errorf("read first change: %w", err)
		}
		ok, err := listen(ctx, pods, consumer{})
		if err != nil {
			return nil, err
		}
		<-ok.sub.Synced()
		m := harness.NewMeter()
		control := synth.NewControl(in.Server.Control)
		if churn {
			_, err = control.Churn(ctx, in.Events)
		} else {
			_, err = control.Update(ctx, in.Events, in.Server.Objects)
		}
		if err != nil {
			return nil, err
		}
		version, err := control.Update(ctx, 1, 1) // of a pod that is not deleted, so that it is delivered
		if err != nil {
			return nil, err
		}
		if err := ok.finish(ctx, version); err != nil {
			return nil, err
		}
		m.Lap("stuck")
		m.Set("events", float64(in.Events))
		m.Set("growth B", m.Heap())
		m.Set("lag", float64(sub.Lag().Objects))
		runtime.KeepAlive(sub)
		return m.Sample(), s.stop(ctx)
	}
}

// relist makes the server drop its history and waits until the session has listed again.
func relist(ctx context.Context, in harness.Input, s *session) error {
	before := s.lists.Load()
	if before == 0 {
		return errors.New("list again: the first list was not reported")
	}
	if err := synth.NewControl(in.Server.Control).Expire(ctx); err != nil {
		return err
	}
	if err := harness.Wait(ctx, func() bool { return s.lists.Load() > before }); err != nil {
		return fmt.Errorf("list again: %w", err)
	}
	return nil
}

// relistHeap measures the live heap during a relist.
func relistHeap(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	s, pods, err := open(ctx, in)
	if err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	m.Set("steady heap B", m.Heap())
	peak := m.WatchHeap()
	err = relist(ctx, in, s)
	m.Set("peak heap B", peak.End())
	if err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	m.Set("after heap B", m.Heap())
	runtime.KeepAlive(pods)
	return m.Sample(), s.stop(ctx)
}

// relistRSS measures the resident memory during a relist.
func relistRSS(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	s, pods, err := open(ctx, in)
	if err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	steady, err := harness.TrimRSS()
	if err != nil {
		return nil, err
	}
	m.Set("steady rss B", steady)
	if err := relist(ctx, in, s); err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	m.Set("peak rss B", harness.PeakRSS())
	m.Set("growth B", harness.PeakRSS()-steady)
	runtime.KeepAlive(pods)
	return m.Sample(), s.stop(ctx)
}
