// Package judge_test tests informertest with client-go's clients: they list, watch and follow over every
// transport.
package judge_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/tattler-dev/tattler/informer/informertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

const acceptProtobuf = "application/vnd.kubernetes.protobuf"

// two returns a server with the pods a at 1001 and b at 1002.
func two() *informertest.Server {
	s := informertest.NewServer()
	s.Serve(pods, "Pod")
	s.Put(pods, "n", "a", nil)
	s.Put(pods, "n", "b", nil)
	return s
}

// transports connect to a server in each way, until the test ends.
var transports = map[string]func(*testing.T, *informertest.Server) *rest.Config{
	"memory":   func(_ *testing.T, s *informertest.Server) *rest.Config { return s.Config() },
	"HTTP/1.1": func(t *testing.T, s *informertest.Server) *rest.Config { return listen(t, s, false) },
	"HTTP/2.0": func(t *testing.T, s *informertest.Server) *rest.Config { return listen(t, s, true) },
}

func listen(t *testing.T, s *informertest.Server, http2 bool) *rest.Config {
	t.Helper()
	srv := httptest.NewUnstartedServer(s)
	srv.EnableHTTP2 = http2
	if http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(func() {
		srv.Client().CloseIdleConnections()
		srv.Close()
	})
	return &rest.Config{Host: srv.URL, Transport: srv.Client().Transport}
}

// client is one of client-go's clients, reduced to their common methods.
type client struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	get   func(context.Context, string) (runtime.Object, error)
	new   runtime.Object
}

func clients(t *testing.T, cfg *rest.Config) map[string]client {
	t.Helper()
	protobufCfg := rest.CopyConfig(cfg)
	protobufCfg.ContentType, protobufCfg.AcceptContentTypes = acceptProtobuf, acceptProtobuf+",application/json"
	jsonCfg := rest.CopyConfig(cfg)
	jsonCfg.ContentType = "application/json"
	all := map[string]client{}
	for name, cfg := range map[string]*rest.Config{"typed protobuf": protobufCfg, "typed JSON": jsonCfg} {
		c, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = of(c.CoreV1().Pods("n").List, c.CoreV1().Pods("n").Watch, c.CoreV1().Pods("n").Get, &corev1.Pod{})
	}
	d, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	all["dynamic"] = of(d.Resource(pods).Namespace("n").List, d.Resource(pods).Namespace("n").Watch,
		func(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
			return d.Resource(pods).Namespace("n").Get(ctx, name, o)
		}, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}})
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	all["metadata"] = of(m.Resource(pods).Namespace("n").List, m.Resource(pods).Namespace("n").Watch,
		func(ctx context.Context, name string, o metav1.GetOptions) (*metav1.PartialObjectMetadata, error) {
			return m.Resource(pods).Namespace("n").Get(ctx, name, o)
		}, &metav1.PartialObjectMetadata{})
	return all
}

func of[L, O runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error),
	get func(context.Context, string, metav1.GetOptions) (O, error),
	o runtime.Object,
) client {
	return client{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) },
		watch: watch,
		get: func(ctx context.Context, name string) (runtime.Object, error) {
			return get(ctx, name, metav1.GetOptions{})
		},
		new: o,
	}
}

// eachClient runs a test with every client over every transport.
func eachClient(t *testing.T, test func(*testing.T, *informertest.Server, client)) {
	t.Helper()
	for transport, reach := range transports {
		for _, name := range []string{"typed protobuf", "typed JSON", "dynamic", "metadata"} {
			t.Run(transport+"/"+name, func(t *testing.T) {
				s := two()
				test(t, s, clients(t, reach(t, s))[name])
				for _, r := range s.Recorded() {
					if r.Proto != cmp.Or(strings.TrimPrefix(transport, "memory"), "HTTP/1.1") {
						t.Errorf("%s was asked over %s", r.Path, r.Proto)
					}
				}
			})
		}
	}
}

// describe describes an object in a line.
func describe(o runtime.Object) string {
	m, err := meta.Accessor(o)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s %s %v", m.GetName(), m.GetUID(), m.GetResourceVersion(), m.GetLabels())
}

func TestClients(t *testing.T) {
	eachClient(t, func(t *testing.T, s *informertest.Server, c client) {
		s.Put(pods, "n", "c", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}})
		s.Put(pods, "other", "d", nil)
		var got []string
		p := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return c.list(t.Context(), o) }))
		p.PageSize = 2
		if err := p.EachListItem(t.Context(), metav1.ListOptions{}, func(o runtime.Object) error {
			got = append(got, describe(o))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := []string{"a uid-1 1001 map[]", "b uid-2 1002 map[]", "c uid-3 1003 map[app:web]"}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
		if pages := len(s.Requests()); pages != 2 {
			t.Errorf("%d pages were requested: %q", pages, s.Requests())
		}
		selected, err := c.list(t.Context(), metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "metadata.name!=a"})
		if err != nil || meta.LenList(selected) != 1 {
			t.Errorf("selected %v, %v", selected, err)
		}
		if o, err := c.get(t.Context(), "c"); err != nil || describe(o) != want[2] {
			t.Errorf("got %v, %v, want %s", o, err, want[2])
		}
		if _, err := c.get(t.Context(), "x"); !apierrors.IsNotFound(err) || err.Error() != `pods "x" not found` {
			t.Errorf("a missing object: %v", err)
		}
		s.Compact()
		if _, err := c.list(t.Context(), metav1.ListOptions{Continue: "list-1-2"}); !apierrors.IsResourceExpired(err) {
			t.Errorf("an old token: %v", err)
		}
	})
}

func TestClientsWatch(t *testing.T) {
	eachClient(t, func(t *testing.T, s *informertest.Server, c client) {
		w, err := c.watch(t.Context(), metav1.ListOptions{ResourceVersion: "1001", AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		next := func() string {
			e := <-w.ResultChan()
			if e.Type == watch.Error {
				return fmt.Sprint("ERROR ", apierrors.ReasonForError(apierrors.FromObject(e.Object)))
			}
			return string(e.Type) + " " + describe(e.Object)
		}
		s.Put(pods, "n", "a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}})
		s.Delete(pods, "n", "b")
		s.Put(pods, "n", "b", nil)
		for _, want := range []string{"ADDED b uid-2 1002 map[]", "MODIFIED a uid-1 1003 map[app:web]", "DELETED b uid-2 1004 map[]", "ADDED b uid-3 1005 map[]"} {
			if got := next(); got != want {
				t.Errorf("watched %q, want %q", got, want)
			}
		}
		s.Bookmark()
		if got, want := next(), "BOOKMARK   1005 map[]"; got != want {
			t.Errorf("watched %q, want %q", got, want)
		}
		s.Misbehave(informertest.Fault{On: informertest.Watches, Effect: informertest.ErrorEvent, Times: 1})
		if got, want := next(), "ERROR Expired"; got != want {
			t.Errorf("watched %q, want %q", got, want)
		}
		if e, open := <-w.ResultChan(); open {
			t.Errorf("after an error: %v", e)
		}
	})
}

// TestReflector: client-go's reflector syncs by a streaming list, then follows.
func TestReflector(t *testing.T) {
	eachClient(t, func(t *testing.T, s *informertest.Server, c client) {
		for i := range 1200 { // more than the server sends at once
			s.Put(pods, "n", fmt.Sprintf("p-%04d", i), nil)
		}
		follow(t, s, c, true)
	})
}

// TestReflectorFallsBack: client-go's reflector lists if streaming lists are off.
func TestReflectorFallsBack(t *testing.T) {
	eachClient(t, func(t *testing.T, s *informertest.Server, c client) {
		s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
		follow(t, s, c, false)
	})
}

// follow runs a reflector, changes objects, and compares its final state.
func follow(t *testing.T, s *informertest.Server, c client, streaming bool) {
	t.Helper()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	lw := &cache.ListWatch{ListWithContextFunc: c.list, WatchFuncWithContext: c.watch}
	r := cache.NewReflectorWithOptions(lw, c.new, store, cache.ReflectorOptions{Name: "test"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	defer func() { cancel(); <-done }()
	until(t, func() bool { return r.LastSyncResourceVersion() == s.Version() })
	s.Put(pods, "n", "a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}})
	s.Delete(pods, "n", "b")
	s.Put(pods, "n", "new", nil)
	until(t, func() bool { return r.LastSyncResourceVersion() == s.Version() })
	want := s.Objects(pods)
	for _, o := range store.List() {
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		key := m.GetNamespace() + "/" + m.GetName()
		if w := want[key]; w == nil || w["metadata"].(map[string]any)["resourceVersion"] != m.GetResourceVersion() {
			t.Errorf("the reflector has %s, the server %v", describe(o.(runtime.Object)), w)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("the reflector lacks %d objects", len(want))
	}
	lists := 0
	for _, q := range s.Recorded() {
		if q.Query.Get("watch") == "" {
			lists++
		}
	}
	if streaming != (lists == 0) {
		t.Errorf("%d lists were requested: %q", lists, s.Requests())
	}
}

// until waits for a condition.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the condition was not met within 2 min")
		}
	}
}
