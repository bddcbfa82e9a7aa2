package clientgo

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// access is a way to list and watch a resource.
type access struct {
	name    string
	gvr     schema.GroupVersionResource
	example runtime.Object
	accept  string // the requests' Accept header
	lw      func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var accesses = []access{
	{"typed, JSON", pods, &corev1.Pod{}, "application/json", func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return ListWatch(must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(cfg, c)).CoreV1().Pods("shop"))
	}},
	{"typed, protobuf", pods, &corev1.Pod{}, "application/vnd.kubernetes.protobuf", func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		cfg = rest.CopyConfig(cfg)
		cfg.ContentType = runtime.ContentTypeProtobuf
		return ListWatch(must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(cfg, c)).CoreV1().Pods("shop"))
	}},
	{"dynamic", widgets, &unstructured.Unstructured{}, "application/json", func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return ListWatch(must[*dynamic.DynamicClient](t)(dynamic.NewForConfigAndClient(cfg, c)).Resource(widgets).Namespace("shop"))
	}},
	{"metadata", widgets, &metav1.PartialObjectMetadata{}, "as=PartialObjectMetadata", metadataOf},
	{"metadata, asked for by kind", widgets, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Widget", APIVersion: "example.com/v1"}},
		"as=PartialObjectMetadata", metadataOf},
	{"metadata, given its kind", widgets, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Widget", APIVersion: "example.com/v1"}}, "as=PartialObjectMetadata",
		func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
			return needsKind{cache.ToListerWatcherWithContext(metadataOf(t, cfg, c))}
		}},
	{"a Go type of one's own", widgets, &gadget{TypeMeta: metav1.TypeMeta{Kind: "Widget", APIVersion: "example.com/v1"}}, "application/json", gadgets},
	{"a built-in kind, dynamic", pods, &unstructured.Unstructured{}, "application/json", func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return ListWatch(must[*dynamic.DynamicClient](t)(dynamic.NewForConfigAndClient(cfg, c)).Resource(pods).Namespace("shop"))
	}},
	{"a built-in kind, metadata", pods, &metav1.PartialObjectMetadata{}, "as=PartialObjectMetadata", func(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
		return ListWatch(must[metadata.Interface](t)(metadata.NewForConfigAndClient(cfg, c)).Resource(pods).Namespace("shop"))
	}},
}

func metadataOf(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
	return ListWatch(must[metadata.Interface](t)(metadata.NewForConfigAndClient(cfg, c)).Resource(widgets).Namespace("shop"))
}

// kinded sets the kind of metadata, as controller-runtime's ListerWatcher does.
type needsKind struct{ cache.ListerWatcherWithContext }

var widgetKind = widgets.GroupVersion().WithKind("Widget")

func (k needsKind) List(o metav1.ListOptions) (runtime.Object, error) {
	return k.ListWithContext(context.Background(), o)
}

func (k needsKind) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return k.WatchWithContext(context.Background(), o)
}

func (k needsKind) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	l, err := k.ListerWatcherWithContext.ListWithContext(ctx, o)
	if l, ok := l.(*metav1.PartialObjectMetadataList); ok && err == nil {
		for i := range l.Items {
			l.Items[i].SetGroupVersionKind(widgetKind)
		}
	}
	return l, err
}

func (k needsKind) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := k.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event)
	p := watch.NewProxyWatcher(events) // watch.Filter's goroutine may outlive its reader
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			select {
			case ev, ok := <-w.ResultChan():
				if !ok {
					return
				}
				ev.Object.GetObjectKind().SetGroupVersionKind(widgetKind)
				select {
				case events <- ev:
				case <-p.StopChan():
					return
				}
			case <-p.StopChan():
				return
			}
		}
	}()
	return p, nil
}

// recorder is a handler that records its notifications.
type recorder struct {
	mu    sync.Mutex
	notes []any
}

func (h *recorder) note(what string, objs ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, append([]any{what}, objs...))
}

func (h *recorder) OnAdd(obj any, initial bool) { h.note(fmt.Sprint("add ", initial), obj) }
func (h *recorder) OnUpdate(old, obj any)       { h.note("update", old, obj) }
func (h *recorder) OnDelete(obj any)            { h.note("delete", obj) }

// sorted sorts the notifications of one list by name, since lists have no order.
func (h *recorder) sorted() []any {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := func(n any) string {
		first := n.([]any)[1]
		if d, ok := first.(cache.DeletedFinalStateUnknown); ok {
			first = d.Obj
		}
		m, err := meta.Accessor(first)
		if err != nil {
			return ""
		}
		return m.GetName()
	}
	notes := slices.Clone(h.notes)
	slices.SortStableFunc(notes, func(a, b any) int { return strings.Compare(name(a), name(b)) })
	return notes
}

// TestRawRequests runs client-go's informer and ours, which takes responses undecoded, on one server: the handlers'
// notifications are equal, to the last field, and so are the caches.
func TestRawRequests(t *testing.T) {
	for why, f := range map[string]informertest.Fault{
		"":                           {},
		", lists that change midway": {On: informertest.StreamingLists, Effect: informertest.ChangesBeforeEnd},
		", no streaming lists":       {On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity},
		", compressed":               {Effect: informertest.GzipMembers},
	} {
		for _, a := range accesses {
			t.Run(a.name+why, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { compareRaw(t, a, f) })
			})
		}
	}
}

func compareRaw(t *testing.T, a access, f informertest.Fault) {
	server := informertest.NewServer()
	if f.On != 0 {
		server.Misbehave(f)
	}
	server.Serve(pods, "Pod")
	server.Serve(widgets, "Widget")
	put := func(name, node string) {
		server.Put(a.gvr, "shop", name, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": name}, "creationTimestamp": "2026-11-21T10:00:00Z"},
			"spec":     map[string]any{"nodeName": node, "containers": []any{map[string]any{"name": "main", "image": "app:1"}}},
		})
	}
	for _, name := range []string{"a", "b", "x", "c"} {
		put(name, "n1")
	}
	put("b", "n0")
	server.Delete(a.gvr, "shop", "x")
	server.Delete(a.gvr, "shop", "c") // and created again
	put("c", "n1")
	server.Put(a.gvr, "else", "where", nil)
	cfg := server.Config()
	e := must[*Engine](t)(New(cfg, Options{}))
	byApp := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "app": func(obj any) ([]string, error) {
		m, err := meta.Accessor(obj)
		return []string{m.GetLabels()["app"]}, err
	}}
	theirs := cache.NewSharedIndexInformer(a.lw(t, cfg, &http.Client{Transport: cfg.Transport}), a.example, 0, byApp)
	lw, m := a.lw(t, cfg, e.HTTPClient()), e.NewInformer
	if _, own := lw.(*listWatch); !own { // like controller-runtime's
		m = e.NewCacheInformer
	}
	ours := m(lw, a.example, 0, byApp)
	for _, i := range []cache.SharedIndexInformer{theirs, ours} {
		// The default handler limits its log by the clock, and may have seen a clock other than the bubble's.
		if err := i.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
			t.Fatal(err)
		}
	}
	var want, got recorder
	handle(t, theirs, &want)
	handle(t, ours, &got)
	start(t, theirs)
	asked := len(server.Recorded())
	start(t, ours)
	pass(time.Second)
	if !e.Stats().Informers[0].Raw {
		t.Fatal("not raw:", e.Stats().Informers[0].Decoded)
	}
	for _, r := range server.Recorded()[asked:] {
		if !strings.Contains(r.Accept, a.accept) || !strings.HasSuffix(r.Path, "/namespaces/shop/"+a.gvr.Resource) {
			t.Errorf("asked for %s as %s", r.Path, r.Accept)
		}
	}
	check := func(what string) {
		t.Helper()
		pass(10 * time.Second)
		compareTold(t, what, want.sorted(), got.sorted())
		compareStores(t, what, theirs, ours)
	}
	check("the first list")
	put("b", "n2")
	put("d", "n1")
	server.Delete(a.gvr, "shop", "a")
	check("events")
	server.SetDown(true) // so that the informers miss the changes
	server.Cut()
	synctest.Wait()
	server.Delete(a.gvr, "shop", "b")
	put("e", "n1")
	put("d", "n7")
	server.Compact()
	server.SetDown(false)
	check("a relist")
	if v, w := ours.LastSyncResourceVersion(), theirs.LastSyncResourceVersion(); v != w || v == "" {
		t.Errorf("version %q, want %q", v, w)
	}
}

func compareTold(t *testing.T, what string, want, got []any) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			t.Errorf("%s: unexpected: %.200v", what, got[i])
		case i >= len(got):
			t.Errorf("%s: missing: %.200v", what, want[i])
		case !reflect.DeepEqual(want[i], got[i]):
			t.Errorf("%s: %s", what, cmp.Diff(want[i], got[i]))
		}
	}
}

func compareStores(t *testing.T, what string, theirs, ours cache.SharedIndexInformer) {
	t.Helper()
	keys := theirs.GetStore().ListKeys()
	if got := ours.GetStore().ListKeys(); len(got) != len(keys) {
		t.Errorf("%s: keys %v, want %v", what, got, keys)
	}
	for _, k := range keys {
		want, _, _ := theirs.GetStore().GetByKey(k)
		got, ok, err := ours.GetStore().GetByKey(k)
		if err != nil || !ok || !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %s differs from client-go's: %s", what, k, cmp.Diff(want, got))
		}
	}
	for _, index := range []string{cache.NamespaceIndex, "app"} {
		for _, v := range theirs.GetIndexer().ListIndexFuncValues(index) {
			want, _ := theirs.GetIndexer().IndexKeys(index, v)
			got, _ := ours.GetIndexer().IndexKeys(index, v)
			expect(t, what+": index "+index, got, want...)
		}
	}
}

func TestRawTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(pods, "Pod")
		server.Put(pods, "shop", "a", nil)
		e := must[*Engine](t)(New(server.Config(), Options{}))
		i := e.NewInformer(accesses[1].lw(t, server.Config(), e.HTTPClient()), &corev1.Pod{}, time.Minute, cache.Indexers{})
		if err := i.SetTransform(func(obj any) (any, error) {
			obj.(*corev1.Pod).Spec.NodeName = "hidden"
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		var l log
		handle(t, i, &l)
		start(t, i)
		pass(5 * time.Minute)
		if st := e.Stats().Informers[0]; !st.Raw {
			t.Errorf("not raw: %s", st.Decoded)
		}
		got := l.take()
		expect(t, "transformed, and resynced", got[:2], "initial shop/a(uid-1 on hidden)", "same shop/a(uid-1 on hidden)")
	})
}

// gadget is a Go type that cannot hold some widgets.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int      `json:"size"`
		Tags []string `json:"tags,omitempty"`
	} `json:"spec"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	c := *g
	return &c
}

func TestAnObjectThatTheTypeCannotHold(t *testing.T) {
	for _, storage := range []Storage{Auto, Live} {
		synctest.Test(t, func(t *testing.T) {
			server := informertest.NewServer()
			server.Serve(widgets, "Widget")
			server.Put(widgets, "shop", "fits", map[string]any{"spec": map[string]any{"size": 1}})
			server.Put(widgets, "shop", "not", map[string]any{"spec": map[string]any{"size": "large"}})
			e := must[*Engine](t)(New(server.Config(), Options{Storage: storage}))
			example := &gadget{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}}
			i := e.NewInformer(gadgets(t, server.Config(), e.HTTPClient()), example, 0, cache.Indexers{"size": func(obj any) ([]string, error) {
				return []string{fmt.Sprint(obj.(*gadget).Spec.Size)}, nil
			}})
			if err := i.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
				t.Fatal(err)
			}
			quiet(t)
			var h recorder
			r := handle(t, i, &h)
			start(t, i)
			pass(time.Second)
			if st := e.Stats().Informers[0]; !st.Raw || st.Undecodable == 0 {
				t.Errorf("%v: %+v", storage, st)
			}
			for range 4 { // by the third list, objects would be kept decoded
				if objs := i.GetStore().List(); len(objs) != 1 || objs[0].(*gadget).Name != "fits" {
					t.Errorf("%v: listed %v", storage, objs)
				}
			}
			if _, ok, _ := i.GetStore().GetByKey("shop/not"); ok {
				t.Errorf("%v: an undecodable object is in the cache", storage)
			}
			if objs, err := i.GetIndexer().ByIndex("size", "1"); err != nil || len(objs) != 1 {
				t.Errorf("%v: indexed %v, %v", storage, objs, err)
			}
			server.Put(widgets, "shop", "not", map[string]any{"spec": map[string]any{"size": 2}})
			server.Put(widgets, "shop", "fits", map[string]any{"spec": map[string]any{"size": "small"}})
			pass(time.Second)
			if objs, err := i.GetIndexer().ByIndex("size", "1"); err != nil || len(objs) != 0 && storage == Auto {
				t.Errorf("%v: found by its old value: %v, %v", storage, objs, err)
			}
			server.Delete(widgets, "shop", "fits")
			pass(time.Second)
			if keys := i.GetIndexer().ListIndexFuncValues("size"); len(keys) != 1 || keys[0] != "2" {
				t.Errorf("%v: values %v", storage, keys)
			}
			if !r.HasSynced() {
				t.Errorf("%v: notified of %v", storage, h.notes)
			}
			last, ok := h.notes[len(h.notes)-1].([]any)[1].(cache.DeletedFinalStateUnknown)
			if !ok || last.Key != "shop/fits" {
				t.Errorf("%v: a handler that knew it gets its deletion, not %v", storage, h.notes)
			}
			if obj, ok, _ := i.GetStore().GetByKey("shop/not"); !ok || obj.(*gadget).Spec.Size != 2 {
				t.Errorf("%v: an object that fits again is in the cache: %v", storage, obj)
			}
		})
	}
}

// gadgetList is a list of gadgets.
type gadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []gadget `json:"items"`
}

func (l *gadgetList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	return &c
}

// gadgets lists and watches widgets as the Go type, like a generated client.
func gadgets(t *testing.T, cfg *rest.Config, c *http.Client) cache.ListerWatcher {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widgetKind, &gadget{})
	scheme.AddKnownTypeWithName(widgets.GroupVersion().WithKind("WidgetList"), &gadgetList{})
	metav1.AddToGroupVersion(scheme, widgets.GroupVersion())
	cfg = rest.CopyConfig(cfg)
	gv := widgets.GroupVersion()
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client := must[*rest.RESTClient](t)(rest.RESTClientForConfigAndClient(cfg, c))
	return ListWatch(gentype.NewClientWithList[*gadget, *gadgetList]("widgets", client, metav1.ParameterCodec, "shop",
		func() *gadget { return &gadget{} }, func() *gadgetList { return &gadgetList{} }))
}

// quiet removes apimachinery's error handlers from a test: they wait by a clock other than the bubble's.
func quiet(t *testing.T) {
	t.Helper()
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil                          //nolint:reassign // it is meant to be
	t.Cleanup(func() { utilruntime.ErrorHandlers = before }) //nolint:reassign // as it was
}

func TestAKindThatIsServedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		e := must[*Engine](t)(New(server.Config(), Options{}))
		i := e.NewInformer(accesses[2].lw(t, server.Config(), e.HTTPClient()), &unstructured.Unstructured{}, 0, nil)
		failures := 0
		if err := i.SetWatchErrorHandler(func(*cache.Reflector, error) { failures++ }); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		pass(10 * time.Minute)
		if i.HasSynced() || failures == 0 {
			t.Errorf("synced although the kind is not served, %d failures", failures)
		}
		server.Serve(widgets, "Widget")
		server.Put(widgets, "shop", "w", nil)
		pass(time.Minute)
		if !i.HasSynced() || len(i.GetStore().List()) != 1 {
			t.Error("the kind is served, but not seen")
		}
	})
}
