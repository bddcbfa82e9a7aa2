package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tattler-dev/tattler/bench/harness"
)

// Reads are the ways in which programs read. Each is a row.
var Reads = []string{"hardly", "index", "lists"}

// Forms are the forms in which programs have pods.
var Forms = []string{"typed", "unstructured", "metadata"}

// ReadsJob names the job of a program with client-go's informers, or with ours.
func ReadsJob(ours bool, reads, form string, stripped bool) string {
	whose := "client-go"
	if ours {
		whose = "ours"
	}
	name := fmt.Sprintf("operator/%s/%s/%s", reads, form, whose)
	if stripped {
		name += "/stripped"
	}
	return name
}

// readsJobs returns jobs for managers with one controller and one index each.
//
//	hardly  Each reconcile gets its object.
//	index   Each reconcile lists, by the index, the pods of its object's node; with metadata, of its namespace.
//	lists   The program lists all pods every ten seconds, without copies.
//
// Streaming lists are off, as on older servers.
func readsJobs() (jobs []harness.Job) {
	for _, reads := range Reads {
		for _, f := range Forms {
			for _, stripped := range []bool{false, true} {
				for _, ours := range []bool{false, true} {
					r := reader{reads: reads, form: f, stripped: stripped, ours: ours}
					jobs = append(jobs, harness.Job{Name: ReadsJob(ours, reads, f, stripped), Run: r.run})
				}
			}
		}
	}
	return jobs
}

type reader struct {
	reads, form    string
	stripped, ours bool
}

// readsFor is the duration of the measurement.
const readsFor = time.Minute

func (r reader) run(ctx context.Context, in harness.Input) (harness.Sample, error) {
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		return nil, fmt.Errorf("set environment: %w", err)
	}
	log.SetLogger(logr.Discard())
	m := harness.NewMeter()
	p, err := r.program(in.Server)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.mgr.Start(running) }()
	err = r.measure(ctx, p, in, m)
	stop()
	return m.Sample(), errors.Join(err, <-ended)
}

func (r reader) measure(ctx context.Context, p *program, in harness.Input, m *harness.Meter) error {
	if !p.mgr.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("sync: %w", context.Cause(ctx))
	}
	if err := harness.Wait(ctx, func() bool { return p.reconciles.Load() >= int64(in.Server.Objects) }); err != nil {
		return fmt.Errorf("reconcile %d of %d objects: %w", p.reconciles.Load(), in.Server.Objects, err)
	}
	m.Set("start peak rss B", harness.PeakRSS())
	m.Lap("start")
	if r.reads == "lists" {
		listing, stop := context.WithCancel(ctx)
		defer stop()
		go r.list(listing, p)
	}
	begin := time.Now()
	if err := p.latency(ctx, m); err != nil {
		return err
	}
	select {
	case <-time.After(readsFor - time.Since(begin)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.Lap("reads")
	m.Memory("steady")
	return nil
}

// list lists all pods repeatedly.
func (r reader) list(ctx context.Context, p *program) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = p.mgr.GetClient().List(ctx, r.listOf(), client.UnsafeDisableDeepCopy)
		}
	}
}

func (r reader) object() client.Object {
	switch r.form {
	case "typed":
		return &corev1.Pod{}
	case "metadata":
		return podMetadata()
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return o
}

func (r reader) listOf() client.ObjectList {
	kind := corev1.SchemeGroupVersion.WithKind("PodList")
	switch r.form {
	case "typed":
		return &corev1.PodList{}
	case "metadata":
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(kind)
		return l
	}
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind)
	return l
}

// place is the index value of a pod.
func place(o client.Object) string {
	switch o := o.(type) {
	case *corev1.Pod:
		return o.Spec.NodeName
	case *unstructured.Unstructured:
		node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
		return node
	}
	return o.GetNamespace()
}

func (r reader) program(s harness.Server) (*program, error) {
	cfg := &rest.Config{Host: s.URL, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: s.CAFile}, QPS: -1}
	cfg.ContentType = runtime.ContentTypeProtobuf
	opts := cache.Options{}
	if r.stripped {
		opts.DefaultTransform = cache.TransformStripManagedFields()
	}
	if r.ours {
		if err := raw(cfg, &opts); err != nil {
			return nil, err
		}
	}
	p := &program{seen: make(chan time.Time, 1), any: true}
	skip := true
	var err error
	p.mgr, err = ctrl.NewManager(cfg, ctrl.Options{
		Cache: opts, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	err = p.mgr.GetFieldIndexer().IndexField(context.Background(), r.object(), byNode, func(o client.Object) []string { return []string{place(o)} })
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return p, builder.ControllerManagedBy(p.mgr).Named("pods").For(r.object()).Complete(r.reconciler(p))
}

func (r reader) reconciler(p *program) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		c, o := p.mgr.GetClient(), r.object()
		if err := c.Get(ctx, req.NamespacedName, o); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if r.reads == "index" {
			if err := c.List(ctx, r.listOf(), client.MatchingFields{byNode: place(o)}, client.UnsafeDisableDeepCopy); err != nil {
				return reconcile.Result{}, fmt.Errorf("list: %w", err)
			}
		}
		p.reconciles.Add(1)
		p.look(req.NamespacedName, o)
		return reconcile.Result{}, nil
	})
}
