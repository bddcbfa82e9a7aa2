package dropin

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
	"github.com/tattler-dev/tattler/internal/informerdiff"
)

// constructor is client-go's, or a drop-in replacement.
type constructor func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// candidate is an implementation of informers.
type candidate struct {
	name string
	// prepare returns the HTTP client for client-go's clients, and the constructor of informers.
	prepare func(*rest.Config) (*http.Client, constructor, error)
}

var theirs = candidate{name: "client-go", prepare: func(cfg *rest.Config) (*http.Client, constructor, error) {
	h, err := rest.HTTPClientFor(cfg)
	return h, cache.NewSharedIndexInformer, err
}}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// form is a client-go client and the form of its objects.
type form struct {
	name    string
	example func() runtime.Object
	listen  func(*rest.Config, *http.Client) (cache.ListerWatcher, error)
	// transform, if set, is the informer's transform.
	transform cache.TransformFunc
}

var forms = []form{
	{"typed, protobuf", typedPod, typed("application/vnd.kubernetes.protobuf", "", ""), nil},
	{"typed, JSON", typedPod, typed("application/json", "", ""), nil},
	{"dynamic", unstructuredPod, untyped, nil},
	{"metadata", func() runtime.Object { return &metav1.PartialObjectMetadata{} }, onlyMetadata, nil},
	{"metadata, of a kind", metadataPod, onlyMetadata, nil}, // not set by the client
	{"typed, selected", typedPod, typed("application/vnd.kubernetes.protobuf", "default", "app!=a2"), nil},
	{"typed, transformed", typedPod, typed("application/vnd.kubernetes.protobuf", "", ""), withoutManagers},
	{"dynamic, transformed", unstructuredPod, untyped, withoutManagers},
}

// withoutManagers is the transform that most programs use.
func withoutManagers(o any) (any, error) {
	m, err := meta.Accessor(o)
	if err == nil {
		m.SetManagedFields(nil)
	}
	return o, err
}

func typedPod() runtime.Object { return &corev1.Pod{} }

func untyped(cfg *rest.Config, h *http.Client) (cache.ListerWatcher, error) {
	c, err := dynamic.NewForConfigAndClient(cfg, h)
	if err != nil {
		return nil, err
	}
	return listWatch(c.Resource(pods), ""), nil
}

func onlyMetadata(cfg *rest.Config, h *http.Client) (cache.ListerWatcher, error) {
	c, err := metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), h)
	if err != nil {
		return nil, err
	}
	return listWatch(c.Resource(pods), ""), nil
}

func typed(contentType, namespace, selector string) func(*rest.Config, *http.Client) (cache.ListerWatcher, error) {
	return func(cfg *rest.Config, h *http.Client) (cache.ListerWatcher, error) {
		cfg = rest.CopyConfig(cfg)
		cfg.ContentType, cfg.AcceptContentTypes = contentType, contentType+",application/json"
		c, err := kubernetes.NewForConfigAndClient(cfg, h)
		if err != nil {
			return nil, err
		}
		return listWatch(c.CoreV1().Pods(namespace), selector), nil
	}
}

func listWatch[L runtime.Object](c clientgo.Client[L], selector string) cache.ListerWatcher {
	return clientgo.ListWatch(c, func(o *metav1.ListOptions) { o.LabelSelector = selector })
}

func unstructuredPod() runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
}

func metadataPod() runtime.Object {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
}

// pair is client-go's informer and the other one, for the same form.
type pair struct {
	name         string
	theirs, ours *side
}

// side is one informer.
type side struct {
	line     line
	informer cache.SharedIndexInformer
	handlers []*handler
	state    map[string]string // as known to a first handler that stays
}

// handler is one registration; its counterpart on the other side has the same index.
type handler struct {
	informerdiff.Handler
	registration cache.ResourceEventHandlerRegistration
	removed      bool
}

func newPair(t *testing.T, f form, other candidate) *pair {
	t.Helper()
	return &pair{name: other.name + ", " + f.name, theirs: newSide(t, f, theirs), ours: newSide(t, f, other)}
}

func newSide(t *testing.T, f form, c candidate) *side {
	t.Helper()
	s := &side{state: map[string]string{}}
	cfg := rest.CopyConfig(here.cfg)
	cfg.Dial = s.line.dial
	h, build, err := c.prepare(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lw, err := f.listen(cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	s.informer = build(lw, f.example(), 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"app": func(o any) ([]string, error) {
			m, err := meta.Accessor(o)
			if err != nil {
				return nil, err
			}
			return []string{m.GetLabels()["app"]}, nil
		},
	})
	if f.transform != nil {
		if err := s.informer.SetTransform(f.transform); err != nil {
			t.Fatal(err)
		}
	}
	s.add(t)
	return s
}

func (s *side) add(t *testing.T) {
	t.Helper()
	h := &handler{}
	var err error
	if h.registration, err = s.informer.AddEventHandler(&h.Handler); err != nil {
		t.Fatal(err)
	}
	s.handlers = append(s.handlers, h)
}

func (s *side) remove(t *testing.T, n int) {
	t.Helper()
	s.handlers[n].removed = true
	if err := cache.ShutDownEventHandler(s.informer, s.handlers[n].registration); err != nil {
		t.Fatal(err)
	}
}

// run runs the informer until the test ends.
func (s *side) run(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// has returns an error until every handler has received a version.
func (s *side) has(key, version string) error {
	for n, h := range s.handlers {
		if got := h.Seen(key); got != version && !h.removed {
			return fmt.Errorf("handler %d knows %s at %q, not at %s", n, key, got, version)
		}
	}
	return nil
}
