package operator

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/informer/clientgo"
)

// handlers is the number of handlers, as in package peer.
const handlers = 10

// counter is a handler that reads its objects and counts its calls.
type counter struct {
	births, updates atomic.Int64
	read            atomic.Int64 // keeps the compiler from removing the reads
}

func (c *counter) look(obj any) {
	if p, ok := obj.(*corev1.Pod); ok {
		c.read.Add(int64(len(p.Name) + len(p.Status.Phase) + len(p.Spec.NodeName)))
	}
}

func (c *counter) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.look(obj); c.births.Add(1) },
		UpdateFunc: func(_, obj any) { c.look(obj); c.updates.Add(1) },
	}
}

// events measures the throughput of events to ten handlers that read the objects, as package peer does.
func events(ctx context.Context, in harness.Input) (harness.Sample, error) {
	cfg := &rest.Config{Host: in.Server.URL, BearerToken: in.Server.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: in.Server.CAFile}, QPS: -1}
	cfg.ContentType = runtime.ContentTypeProtobuf
	e, err := clientgo.New(cfg, clientgo.Options{})
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfigAndClient(cfg, e.HTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	inf := e.NewInformer(clientgo.ListWatch(c.CoreV1().Pods("")), &corev1.Pod{}, 0, cache.Indexers{})
	counters := make([]counter, handlers)
	for i := range counters {
		if _, err := inf.AddEventHandler(counters[i].handler()); err != nil {
			return nil, fmt.Errorf("add handler: %w", err)
		}
	}
	go inf.RunWithContext(ctx)
	all := func(n func(*counter) int64, want int) func() bool {
		return func() bool {
			for i := range counters {
				if n(&counters[i]) < int64(want) {
					return false
				}
			}
			return true
		}
	}
	if err := harness.Wait(ctx, all(func(c *counter) int64 { return c.births.Load() }, in.Server.Objects)); err != nil {
		return nil, fmt.Errorf("hear of the first objects: %w", err)
	}
	m := harness.NewMeter()
	if _, err := synth.NewControl(in.Server.Control).Update(ctx, in.Events, in.Server.Objects); err != nil {
		return nil, err
	}
	if err := harness.Wait(ctx, all(func(c *counter) int64 { return c.updates.Load() }, in.Events)); err != nil {
		return nil, fmt.Errorf("hear of the updates: %w", err)
	}
	m.Lap("events")
	m.Set("sent", float64(in.Events))
	m.Set("heard", float64(in.Events))
	return m.Sample(), nil
}
