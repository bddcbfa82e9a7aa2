// Package operator measures a controller-runtime program with client-go's informers and with ours. It has three
// controllers: of typed pods, of the metadata of pods, and of custom resources as maps. Each reconcile gets its
// object by key.
package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/bench/harness"
)

// byNode is the indexed field of pods.
const byNode = "spec.nodeName"

// form selects the informers of the program.
type form func(*rest.Config, *cache.Options) error

// Jobs are the measurements of this package.
func Jobs() []harness.Job {
	return append(readsJobs(), []harness.Job{
		{Name: "operator/client-go", Run: run(func(*rest.Config, *cache.Options) error { return nil })},
		{Name: "operator/decoded", Run: run(decoded)},
		{Name: "operator/raw", Run: run(raw)},
		{Name: "operator/events", Run: events},
	}...)
}

// program is the operator.
type program struct {
	mgr        ctrl.Manager
	reconciles atomic.Int64
	mu         sync.Mutex
	awaited    types.NamespacedName
	version    string
	seen       chan time.Time // receives the time of the awaited reconcile
	any        bool           // accept a pod in any form, because there is only one controller
}

// run measures the first reconcile of every object, the memory afterwards, the time from a change to its
// reconcile, and lists.
func run(f form) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		log.SetLogger(logr.Discard())
		m := harness.NewMeter()
		p, err := newProgram(in.Server, f)
		if err != nil {
			return nil, err
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- p.mgr.Start(running) }()
		err = p.measure(ctx, in, m)
		stop()
		return m.Sample(), errors.Join(err, <-ended)
	}
}

func (p *program) measure(ctx context.Context, in harness.Input, m *harness.Meter) error {
	if !p.mgr.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("sync: %w", context.Cause(ctx))
	}
	m.Lap("sync")
	want := int64(2*in.Server.Objects + in.Server.Widgets)
	if err := harness.Wait(ctx, func() bool { return p.reconciles.Load() >= want }); err != nil {
		return fmt.Errorf("reconcile %d of %d objects: %w", p.reconciles.Load(), want, err)
	}
	m.Lap("reconciled")
	m.AwaitIdle(ctx)
	m.Lap("settled")
	m.Memory("steady")
	if err := p.latency(ctx, m); err != nil {
		return err
	}
	c := p.mgr.GetClient()
	some := &corev1.PodList{}
	if err := c.List(ctx, some, client.Limit(1)); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if len(some.Items) == 0 {
		return errors.New("there are no pods")
	}
	for range 2 { // an object that is read again stays decoded
		start := time.Now()
		if err := c.List(ctx, &corev1.PodList{}); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if _, ok := m.Sample()["first list ms"]; !ok {
			m.Set("first list ms", time.Since(start).Seconds()*1000)
		}
	}
	for _, t := range []struct {
		name string
		opts []client.ListOption
	}{
		{"list", nil},
		{"list of a node", []client.ListOption{client.MatchingFields{byNode: some.Items[0].Spec.NodeName}}},
		{"list, not copied", []client.ListOption{client.UnsafeDisableDeepCopy}},
	} {
		err := m.Time(ctx, t.name, func(int) error { return c.List(ctx, &corev1.PodList{}, t.opts...) })
		if err != nil {
			return err
		}
	}
	return nil
}

func newProgram(s harness.Server, f form) (*program, error) {
	cfg := &rest.Config{Host: s.URL, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: s.CAFile}, QPS: -1}
	cfg.ContentType = runtime.ContentTypeProtobuf
	opts := cache.Options{}
	if err := f(cfg, &opts); err != nil {
		return nil, err
	}
	p := &program{seen: make(chan time.Time, 1)}
	skip := true
	var err error
	p.mgr, err = ctrl.NewManager(cfg, ctrl.Options{Cache: opts, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip}})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	err = p.mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, byNode, func(o client.Object) []string {
		return []string{o.(*corev1.Pod).Spec.NodeName}
	})
	for _, o := range []client.Object{&corev1.Pod{}, podMetadata(), widget()} { // so that the cache knows them before it starts
		_, ierr := p.mgr.GetCache().GetInformer(context.Background(), o)
		err = errors.Join(err, ierr)
	}
	return p, errors.Join(err,
		builder.ControllerManagedBy(p.mgr).Named("pods").For(&corev1.Pod{}).Complete(p.reconciler(func() client.Object { return &corev1.Pod{} })),
		builder.ControllerManagedBy(p.mgr).Named("metadata").For(&corev1.Pod{}, builder.OnlyMetadata).Complete(p.reconciler(podMetadata)),
		builder.ControllerManagedBy(p.mgr).Named("widgets").For(widget()).Complete(p.reconciler(widget)),
	)
}

func podMetadata() client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return o
}

func widget() client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gen.Widgets.GroupVersion().WithKind("Widget"))
	return o
}

// reconciler returns a reconciler that gets its object and counts.
func (p *program) reconciler(empty func() client.Object) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		o := empty()
		err := p.mgr.GetClient().Get(ctx, req.NamespacedName, o)
		if err == nil {
			p.reconciles.Add(1)
			p.look(req.NamespacedName, o)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	})
}

// look signals the reconcile of the awaited version of a pod.
func (p *program) look(name types.NamespacedName, o client.Object) {
	if _, ok := o.(*corev1.Pod); !ok && !p.any {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == p.awaited && o.GetAnnotations()["bench"] == p.version {
		p.awaited = types.NamespacedName{}
		p.seen <- time.Now()
	}
}

// latency measures the time from before a write until its reconcile.
func (p *program) latency(ctx context.Context, m *harness.Meter) error {
	const writes = 200
	pods := &corev1.PodList{}
	if err := p.mgr.GetAPIReader().List(ctx, pods, client.Limit(writes)); err != nil { // the cache may have no typed pods
		return fmt.Errorf("list: %w", err)
	}
	var took []time.Duration
	for i := range pods.Items {
		o := &pods.Items[i]
		version := fmt.Sprint(time.Now().UnixNano())
		p.mu.Lock()
		p.awaited, p.version = client.ObjectKeyFromObject(o), version
		p.mu.Unlock()
		start := time.Now()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"bench":"%s"}}}`, version))
		if err := p.mgr.GetClient().Patch(ctx, o, patch); err != nil {
			return fmt.Errorf("patch: %w", err)
		}
		select {
		case at := <-p.seen:
			took = append(took, at.Sub(start))
		case <-ctx.Done():
			return fmt.Errorf("wait for a reconcile: %w", context.Cause(ctx))
		}
	}
	slices.Sort(took)
	m.Set("median ms", took[len(took)/2].Seconds()*1000)
	m.Set("p99 ms", took[len(took)*99/100].Seconds()*1000)
	return nil
}
