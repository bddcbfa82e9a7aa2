package manager

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tattler-dev/tattler/internal/informerdiff"
)

var (
	widgetKind = schema.GroupVersionKind{Group: "compat.tattler.dev", Version: "v1", Kind: "Widget"}
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// byNode is the indexed field of pods.
const byNode = "spec.nodeName"

// operator is a program with three controllers, which record what they reconcile.
type operator struct {
	name     string
	line     line
	requests requests
	mgr      ctrl.Manager

	mu       sync.Mutex
	seen     map[string]string // by controller and key: the state at the last reconcile
	handlers map[string]*informerdiff.Handler
	events   map[string][]informerdiff.Call // of the handlers, since the last comparison
}

// newOperator returns an operator whose cache's options are changed by with.
func newOperator(t *testing.T, name string, with func(*rest.Config, *cache.Options)) *operator {
	t.Helper()
	o := &operator{name: name, seen: map[string]string{}, handlers: map[string]*informerdiff.Handler{}, events: map[string][]informerdiff.Call{}}
	cfg := rest.CopyConfig(here.cfg)
	cfg.Dial = o.line.dial
	cfg.Wrap(o.requests.wrap)
	opts := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Label:     labels.SelectorFromSet(labels.Set{"kept": "yes"}),
				Transform: withoutStatus,
			},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{"default": {}, "kube-public": {}}},
		},
	}
	with(cfg, &opts)
	skip := true
	var err error
	o.mgr, err = ctrl.NewManager(cfg, ctrl.Options{
		Cache:      opts,
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{o.pods(), o.widgets(), o.secrets()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// withoutStatus is a transform that drops a part of a typed object.
func withoutStatus(in any) (any, error) {
	if p, ok := in.(*corev1.Pod); ok {
		p.ManagedFields, p.Status = nil, corev1.PodStatus{}
	}
	return in, nil
}

// pods is a controller of typed objects, with a predicate and a field index.
func (o *operator) pods() error {
	err := o.mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, byNode, func(p client.Object) []string {
		return []string{p.(*corev1.Pod).Spec.NodeName}
	})
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(o.mgr).Named("pods").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(wanted))).
		Complete(o.reconciler("pods", func() client.Object { return &corev1.Pod{} }, func(p client.Object) string {
			return p.GetResourceVersion() + " " + p.(*corev1.Pod).Spec.Containers[0].Image
		}))
}

// wanted is the pods' predicate. Its value never changes for a pod.
func wanted(p client.Object) bool { return p.GetAnnotations()["wanted"] != "no" }

// widgets is a controller of unstructured objects. It reconciles an object when its generation changes, or when
// the ConfigMap of the same name changes.
func (o *operator) widgets() error {
	return builder.ControllerManagedBy(o.mgr).Named("widgets").
		For(widget(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, m client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(m)}}
		})).
		Complete(o.reconciler("widgets", func() client.Object { return widget() }, func(w client.Object) string {
			m := &corev1.ConfigMap{}
			if err := o.mgr.GetClient().Get(context.Background(), client.ObjectKeyFromObject(w), m); err != nil && !apierrors.IsNotFound(err) {
				return err.Error()
			}
			return fmt.Sprint(w.GetGeneration(), w.(*unstructured.Unstructured).Object["spec"], m.Data)
		}))
}

// secrets is a controller of metadata-only objects.
func (o *operator) secrets() error {
	return builder.ControllerManagedBy(o.mgr).Named("secrets").
		For(&corev1.Secret{}, builder.OnlyMetadata).
		Complete(o.reconciler("secrets", func() client.Object { return secret() }, func(s client.Object) string {
			return s.GetResourceVersion() + fmt.Sprint(s.GetLabels())
		}))
}

func widget() *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(widgetKind)
	return w
}

func secret() *metav1.PartialObjectMetadata {
	s := &metav1.PartialObjectMetadata{}
	s.SetGroupVersionKind(secretKind)
	return s
}

// reconciler returns a reconciler that gets the object from the cache and records the result of see.
func (o *operator) reconciler(controller string, empty func() client.Object, see func(client.Object) string) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		object, what := empty(), "gone"
		err := o.mgr.GetClient().Get(ctx, req.NamespacedName, object)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if err == nil {
			what = see(object)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.seen[at(controller, req.NamespacedName)] = what
		return reconcile.Result{}, nil
	})
}

func at(controller string, name types.NamespacedName) string { return controller + " " + name.String() }

// record returns the states at the last reconciles, by controller and key.
func (o *operator) record() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.seen)
}

// run runs the operator until the test ends, with an additional handler on each of its informers.
func (o *operator) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- o.mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", o.name, err)
		}
	})
	for name, object := range map[string]client.Object{"pods": &corev1.Pod{}, "widgets": widget(), "secrets": secret(), "configmaps": &corev1.ConfigMap{}} {
		wait, stop := context.WithTimeout(ctx, time.Minute)
		informer, err := o.mgr.GetCache().GetInformer(wait, object)
		stop()
		if err != nil {
			t.Fatalf("%s: %s: %v", o.name, name, err)
		}
		o.handlers[name] = &informerdiff.Handler{}
		if _, err := informer.AddEventHandler(o.handlers[name]); err != nil {
			t.Fatalf("%s: %s: %v", o.name, name, err)
		}
	}
}

// collect takes the events that the handlers have received.
func (o *operator) collect() {
	for kind, h := range o.handlers {
		o.events[kind] = append(o.events[kind], h.Take()...)
	}
}

// received returns an error unless the handlers have received these versions.
func (o *operator) received(marks []mark) error {
	for _, m := range marks {
		if seen := o.handlers[m.kind].Seen(m.key); seen != m.version {
			return fmt.Errorf("%s: the handler of %s has version %q of %s, want %s", o.name, m.kind, seen, m.key, m.version)
		}
	}
	return nil
}

// line is the network between an operator and the API server, which can be cut.
type line struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, nil
}

// cut breaks every connection.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// requests are an operator's lists and watches, and how they were answered. They show why events differ.
type requests struct {
	mu    sync.Mutex
	lines []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if req.Method == http.MethodGet {
			line := fmt.Sprintf("%s %s: ", time.Now().Format("05.000"), req.URL.RequestURI())
			if err != nil {
				line += err.Error()
			} else {
				line += resp.Status
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.lines = append(r.lines, line)
		}
		return resp, err
	})
}

// String returns the requests since the last clear.
func (r *requests) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n  ")
}

func (r *requests) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
