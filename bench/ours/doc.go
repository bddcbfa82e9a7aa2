// Package ours measures this repository's informers, as package peer measures client-go's.
package ours

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/informer"
)

// podResource is the resource that most jobs watch.
var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// Jobs are the measurements of this package.
func Jobs() []harness.Job {
	list := []harness.Job{
		{Name: "tattler/typed", Run: typed},
		{Name: "tattler/live", Run: live},
		{Name: "tattler/live-unstructured", Run: liveUntyped},
		{Name: "tattler/live-churn", Run: liveChurn},
		{Name: "tattler/typed-index", Run: typedWithIndex(indexByFunction)},
		{Name: "tattler/typed-field-index", Run: typedWithIndex(indexByField)},
		{Name: "tattler/unstructured", Run: untyped(podResource)},
		{Name: "tattler/widgets", Run: untyped(gen.Widgets)},
		{Name: "tattler/million", Run: typed},
		{Name: "tattler/reads-unstructured", Run: readUntyped},
		{Name: "tattler/relist-heap", Run: relistHeap},
		{Name: "tattler/relist-rss", Run: relistRSS},
		{Name: "tattler/stuck-updates", Run: stuck(false)},
		{Name: "tattler/stuck-churn", Run: stuck(true)},
		{Name: "tattler/checkpoint", Run: checkpoint},
		{Name: "tattler/restart", Run: restart},
		{Name: "tattler/audit", Run: audit},
	}
	for name, s := range map[string]informer.Storage{"compact": informer.CompactStorage, "auto": informer.AutoStorage, "live": informer.LiveStorage} {
		list = append(list, harness.Job{Name: "tattler/reads-" + name, Run: readTyped(s)})
	}
	for name, c := range consumers {
		list = append(list, harness.Job{Name: "tattler/events-" + name, Run: events(c)})
	}
	return list
}

// session is a running cluster.
type session struct {
	*informer.Cluster
	lists  atomic.Int64 // successful lists
	paged  atomic.Bool  // a list was not a streaming list
	cancel context.CancelFunc
	ended  chan error
}

// connect prepares a session. Views are opened before run.
func connect(in harness.Input, o informer.Options) (*session, error) {
	s := &session{ended: make(chan error, 1)}
	o.Hooks.List = func(l informer.ListInfo) {
		if l.Err == nil {
			s.lists.Add(1)
			s.paged.CompareAndSwap(false, !l.Streaming)
		}
	}
	cfg := &rest.Config{Host: in.Server.URL, BearerToken: in.Server.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: in.Server.CAFile}}
	var err error
	s.Cluster, err = informer.NewCluster(cfg, o)
	return s, err
}

// run starts the session.
func (s *session) run(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	go func() { s.ended <- s.Run(ctx) }()
}

// stop ends the session and waits for its end.
func (s *session) stop(ctx context.Context) error {
	s.cancel()
	select {
	case err := <-s.ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop: %w", context.Cause(ctx))
	}
}

// sync starts the session and waits until its views have synced.
func sync[T informer.Object](ctx context.Context, s *session, inf *informer.Informer[T], want int) error {
	s.run(ctx)
	if err := s.Wait(ctx); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if s.paged.Load() {
		return errors.New("sync: the list was paged; the peer's is a streaming list")
	}
	if n := inf.Len(); n != want {
		return fmt.Errorf("sync: there are %d objects, not %d", n, want)
	}
	return nil
}

// open opens a session with a view of pods and syncs it.
func open(ctx context.Context, in harness.Input, opts ...informer.Option) (*session, *informer.Informer[*corev1.Pod], error) {
	s, err := connect(in, informer.Options{})
	if err != nil {
		return nil, nil, err
	}
	pods, err := informer.For[*corev1.Pod](s.Cluster, opts...)
	if err != nil {
		return nil, nil, err
	}
	return s, pods, sync(ctx, s, pods, in.Server.Objects)
}

// typed measures the sync of a view of pods, and its memory.
func typed(ctx context.Context, in harness.Input) (harness.Sample, error) {
	return stored(ctx, in, informer.CompactStorage)
}

// live is like typed, with all objects decoded.
func live(ctx context.Context, in harness.Input) (harness.Sample, error) {
	return stored(ctx, in, informer.LiveStorage)
}

func stored(ctx context.Context, in harness.Input, storage informer.Storage) (harness.Sample, error) {
	m := harness.NewMeter()
	s, pods, err := open(ctx, in, informer.WithStorage(storage))
	if err != nil {
		return nil, err
	}
	m.Lap("sync")
	m.AwaitIdle(ctx)
	m.Lap("settled")
	m.Memory("steady")
	m.Collections()
	return m.Sample(), errors.Join(hot(m, pods), s.stop(ctx))
}

// liveUntyped measures a view of maps, all of which stay decoded.
func liveUntyped(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	s, err := connect(in, informer.Options{})
	if err != nil {
		return nil, err
	}
	objects, err := informer.Unstructured(s.Cluster, podResource, informer.WithStorage(informer.LiveStorage))
	if err != nil {
		return nil, err
	}
	if err := sync(ctx, s, objects, in.Server.Objects); err != nil {
		return nil, err
	}
	m.Lap("sync")
	m.AwaitIdle(ctx)
	m.Lap("settled")
	m.Memory("steady")
	m.Collections()
	return m.Sample(), errors.Join(hot(m, objects), s.stop(ctx))
}

// liveChurn measures the memory that deleted pods leave behind when all are kept decoded.
func liveChurn(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	s, pods, err := open(ctx, in, informer.WithStorage(informer.LiveStorage))
	if err != nil {
		return nil, err
	}
	l, err := listen(ctx, pods, consumer{})
	if err != nil {
		return nil, err
	}
	control := synth.NewControl(in.Server.Control)
	churn := func(n int) (float64, error) {
		if _, err := control.Churn(ctx, n); err != nil {
			return 0, err
		}
		version, err := control.Update(ctx, 1, 1) // it arrives after all of them
		if err != nil {
			return 0, err
		}
		last, err := strconv.ParseUint(version, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read last version: %w", err)
		}
		if err := harness.Wait(ctx, func() bool { return l.seen.Load() >= last }); err != nil {
			return 0, fmt.Errorf("hear of the last event: %w", err)
		}
		m.AwaitIdle(ctx)
		return m.Heap(), nil
	}
	before, err := churn(in.Events) // afterwards the table of shared parts no longer grows
	if err != nil {
		return nil, err
	}
	after, err := churn(in.Events)
	if err != nil {
		return nil, err
	}
	m.Set("before B", before)
	m.Set("growth B", after-before)
	runtime.KeepAlive(pods)
	return m.Sample(), s.stop(ctx)
}

// hot records the heap after enough reads to fill the set of decoded objects.
func hot[T informer.Object](m *harness.Meter, inf *informer.Informer[T]) error {
	const enough = 2000
	read := 0
	for k, err := range inf.Keys() {
		if err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		if _, err := inf.Get(k.Namespace, k.Name); err != nil {
			return fmt.Errorf("read %v: %w", k, err)
		}
		if read++; read == enough {
			break
		}
	}
	m.Set("hot heap B", m.Heap())
	runtime.KeepAlive(inf)
	return nil
}

func indexByFunction(pods *informer.Informer[*corev1.Pod]) (*informer.Index[*corev1.Pod, string], error) {
	return informer.AddIndex(pods, "node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }), nil
}

func indexByField(pods *informer.Informer[*corev1.Pod]) (*informer.Index[*corev1.Pod, string], error) {
	return informer.AddFieldIndex(pods, "spec.nodeName")
}

// typedWithIndex measures a view with an index of the pods by node.
func typedWithIndex(add func(*informer.Informer[*corev1.Pod]) (*informer.Index[*corev1.Pod, string], error)) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		m := harness.NewMeter()
		s, err := connect(in, informer.Options{})
		if err != nil {
			return nil, err
		}
		pods, err := informer.For[*corev1.Pod](s.Cluster)
		if err != nil {
			return nil, err
		}
		byNode, err := add(pods)
		if err != nil {
			return nil, err
		}
		if err := sync(ctx, s, pods, in.Server.Objects); err != nil {
			return nil, err
		}
		m.Lap("sync")
		m.AwaitIdle(ctx)
		m.Lap("settled")
		if err := check(byNode, in.Server.Objects); err != nil {
			return nil, err
		}
		m.Memory("steady")
		err = hot(m, pods)
		runtime.KeepAlive(byNode)
		return m.Sample(), errors.Join(err, s.stop(ctx))
	}
}

// check verifies that the index has every object.
func check(ix *informer.Index[*corev1.Pod, string], want int) error {
	nodes, err := ix.Values()
	n := 0
	for _, node := range nodes {
		keys, err2 := ix.Keys(node)
		n += len(keys)
		err = errors.Join(err, err2)
	}
	if err == nil && n != want {
		err = fmt.Errorf("the index has %d objects, not %d", n, want)
	}
	if err != nil {
		return fmt.Errorf("look up index: %w", err)
	}
	return nil
}

// untyped measures a view of maps.
func untyped(gvr schema.GroupVersionResource) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		want := in.Server.Objects
		if gvr == gen.Widgets {
			want = in.Server.Widgets
		}
		m := harness.NewMeter()
		s, err := connect(in, informer.Options{})
		if err != nil {
			return nil, err
		}
		var objects *informer.Informer[*unstructured.Unstructured]
		if objects, err = informer.Unstructured(s.Cluster, gvr); err != nil {
			return nil, err
		}
		if err := sync(ctx, s, objects, want); err != nil {
			return nil, err
		}
		m.Lap("sync")
		m.AwaitIdle(ctx)
		m.Lap("settled")
		m.Memory("steady")
		return m.Sample(), errors.Join(hot(m, objects), s.stop(ctx))
	}
}
