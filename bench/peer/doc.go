// Package peer measures client-go as its users use it: shared informer factories with their default
// options (streaming lists since v0.35), protobuf where a type has it.
//
// It also measures the bare download: an HTTP client that reads the same list as an informer and
// discards it.
package peer

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/bench/harness"
)

// Version is the peer's name and its version in this program.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/client-go" {
				return "client-go " + m.Version
			}
		}
	}
	return "client-go"
}

// Jobs are the measurements of this package.
func Jobs() []harness.Job {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	return []harness.Job{
		{Name: "client-go/typed", Run: syncing(typed)},
		{Name: "client-go/typed-index", Run: syncing(typedWithIndex)},
		{Name: "client-go/dynamic", Run: syncing(untyped(pods))},
		{Name: "client-go/widgets", Run: syncing(untyped(gen.Widgets))},
		{Name: "client-go/reads", Run: reads},
		{Name: "client-go/events", Run: events(false)},
		{Name: "client-go/events-both", Run: events(true)},
		{Name: "client-go/stuck-updates", Run: stuck(false)},
		{Name: "client-go/stuck-churn", Run: stuck(true)},
		{Name: "client-go/relist-heap", Run: relistHeap},
		{Name: "client-go/relist-rss", Run: relistRSS},
		{Name: "bare/list-protobuf", Run: bare(false, apiruntime.ContentTypeProtobuf, false)},
		{Name: "bare/list-protobuf-gzip", Run: bare(false, apiruntime.ContentTypeProtobuf, true)},
		{Name: "bare/list-json", Run: bare(false, apiruntime.ContentTypeJSON, false)},
		{Name: "bare/list-json-gzip", Run: bare(false, apiruntime.ContentTypeJSON, true)},
		{Name: "bare/stream-protobuf", Run: bare(true, apiruntime.ContentTypeProtobuf, true)},
		{Name: "bare/stream-json", Run: bare(true, apiruntime.ContentTypeJSON, true)},
	}
}

func config(s harness.Server) *rest.Config {
	return &rest.Config{
		Host: s.URL, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: s.CAFile},
		QPS: -1, // no client-side limit: the API server has one
	}
}

// informer is a shared informer that has not started, and the function that starts it.
type informer struct {
	cache.SharedIndexInformer
	start func(stop <-chan struct{})
	want  int // objects
}

// typed returns an informer of pods.
func typed(s harness.Server) (informer, error) {
	cfg := config(s)
	cfg.ContentType = apiruntime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return informer{}, fmt.Errorf("make client: %w", err)
	}
	f := informers.NewSharedInformerFactory(client, 0)
	return informer{f.Core().V1().Pods().Informer(), f.Start, s.Objects}, nil
}

// typedWithIndex returns an informer of pods with an index by node.
func typedWithIndex(s harness.Server) (informer, error) {
	inf, err := typed(s)
	if err != nil {
		return inf, err
	}
	err = inf.AddIndexers(cache.Indexers{"node": func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}})
	return inf, err
}

// untyped returns a dynamic informer.
func untyped(gvr schema.GroupVersionResource) func(harness.Server) (informer, error) {
	return func(s harness.Server) (informer, error) {
		client, err := dynamic.NewForConfig(config(s))
		if err != nil {
			return informer{}, fmt.Errorf("make client: %w", err)
		}
		f := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		want := s.Objects
		if gvr == gen.Widgets {
			want = s.Widgets
		}
		return informer{f.ForResource(gvr).Informer(), f.Start, want}, nil
	}
}

// sync starts the informer and waits until it has synced.
func (i informer) sync(ctx context.Context) error {
	i.start(ctx.Done())
	if err := harness.Wait(ctx, i.HasSynced); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if n := len(i.GetStore().ListKeys()); n != i.want {
		return fmt.Errorf("sync: there are %d objects, not %d", n, i.want)
	}
	return nil
}

// syncing measures the sync of an informer, and its memory.
func syncing(open func(harness.Server) (informer, error)) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		m := harness.NewMeter()
		inf, err := open(in.Server)
		if err != nil {
			return nil, err
		}
		if err := inf.sync(ctx); err != nil {
			return nil, err
		}
		m.Lap("sync")
		m.AwaitIdle(ctx)
		m.Lap("settled")
		m.Memory("steady")
		m.Collections()
		runtime.KeepAlive(inf)
		return m.Sample(), nil
	}
}
