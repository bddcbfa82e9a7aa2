package upstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// Some of the suites' tests use stores with special keys, or client-go's store alone. The tests of this file repeat
// them on the store of an informer. eachInformer runs a test on client-go's informer and on ours.
func eachInformer(t *testing.T, f func(t *testing.T, source *fcache.FakeControllerSource, informer cache.SharedIndexInformer)) {
	t.Helper()
	for name, construct := range map[string]func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer{
		"client-go": cache.NewSharedIndexInformer,
		"tattler":   clientgo.NewSharedIndexInformer,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := fcache.NewFakeControllerSource()
				t.Cleanup(source.Shutdown)
				f(t, source, construct(source, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
			})
		})
	}
}

func pod(namespace, name string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		p.Labels[key] = value
	}
	return p
}

// start runs an informer until the test ends, and returns the recorded calls of a handler.
func start(t *testing.T, informer cache.SharedIndexInformer) *calls {
	t.Helper()
	h := &calls{}
	if _, err := informer.AddEventHandler(h); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(t.Context()) })
	t.Cleanup(running.Wait)
	synctest.Wait()
	if !informer.HasSynced() {
		t.Fatal("the informer has not synced")
	}
	return h
}

// calls records the calls of a handler.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (h *calls) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, fmt.Sprintf(format, args...))
}

func (h *calls) OnAdd(o any, initial bool) { h.add("add %s %v", name(o), initial) }
func (h *calls) OnUpdate(_, o any)         { h.add("update %s", name(o)) }
func (h *calls) OnDelete(o any) {
	if tomb, ok := o.(cache.DeletedFinalStateUnknown); ok {
		h.add("lose %s", tomb.Key)
		return
	}
	h.add("delete %s", name(o))
}

func name(o any) string { return cache.MetaObjectToName(o.(*corev1.Pod)).String() }

// take returns the calls since the last take.
func (h *calls) take() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := strings.Join(h.list, ", ")
	h.list = nil
	return taken
}

// TestStoreKeys: a store finds an object by its namespace and name alone, and deletes one by the key of a tombstone.
func TestStoreKeys(t *testing.T) {
	eachInformer(t, func(t *testing.T, _ *fcache.FakeControllerSource, informer cache.SharedIndexInformer) {
		store := informer.GetStore()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		for _, o := range []any{pod("shop", "a", "x=1"), pod("shop", "b"), node} {
			if err := store.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		keys := func() string { return strings.Join(slices.Sorted(slices.Values(store.ListKeys())), " ") }
		if got := keys(); got != "a shop/a shop/b" {
			t.Errorf("the keys are %q", got)
		}
		if o, ok, err := store.Get(pod("shop", "a")); err != nil || !ok || o.(*corev1.Pod).Labels["x"] != "1" {
			t.Errorf("Get returned %v, %v, %v", o, ok, err)
		}
		if o, ok, err := store.GetByKey("a"); err != nil || !ok || o.(*corev1.Node).Name != "a" {
			t.Errorf("GetByKey returned %v, %v, %v", o, ok, err)
		}
		if err := store.Delete(cache.DeletedFinalStateUnknown{Key: "shop/b"}); err != nil {
			t.Error(err)
		}
		if err := store.Delete(node); err != nil {
			t.Error(err)
		}
		if got := keys(); got != "shop/a" {
			t.Errorf("after two deletions the keys are %q", got)
		}
		for verb, f := range map[string]func(any) error{"Add": store.Add, "Update": store.Update, "Delete": store.Delete} {
			if err := f("text"); !errors.As(err, new(cache.KeyError)) {
				t.Errorf("%s of an object without a key returned %v", verb, err)
			}
		}
		if err := store.Replace([]any{pod("", "c")}, "7"); err != nil || keys() != "c" {
			t.Errorf("Replace returned %v and left %q", err, keys())
		}
	})
}

// TestListAll: client-go's helpers for listers find the objects that match a label selector.
func TestListAll(t *testing.T) {
	eachInformer(t, func(t *testing.T, _ *fcache.FakeControllerSource, informer cache.SharedIndexInformer) {
		indexer := informer.GetIndexer()
		for i := range 1000 {
			p := pod(fmt.Sprintf("ns-%d", i%2), fmt.Sprint(i))
			if i%10 == 0 {
				p.Labels["match"] = "true"
			}
			if err := indexer.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		some := labels.SelectorFromSet(labels.Set{"match": "true"})
		for _, tc := range []struct {
			namespace string
			selector  labels.Selector
			want      int
		}{
			{metav1.NamespaceAll, some, 100},
			{metav1.NamespaceAll, labels.Everything(), 1000},
			{metav1.NamespaceAll, labels.Nothing(), 0},
			{"ns-0", some, 100},
			{"ns-1", some, 0},
			{"ns-1", labels.Everything(), 500},
			{"none", labels.Everything(), 0},
		} {
			got := 0
			if err := cache.ListAllByNamespace(indexer, tc.namespace, tc.selector, func(any) { got++ }); err != nil {
				t.Error(err)
			}
			if got != tc.want {
				t.Errorf("in the namespace %q, %q selects %d of %d pods", tc.namespace, tc.selector, got, tc.want)
			}
		}
	})
}

// TestResetWatch: after a lost connection handlers are notified of the changes meanwhile.
func TestResetWatch(t *testing.T) {
	eachInformer(t, func(t *testing.T, source *fcache.FakeControllerSource, informer cache.SharedIndexInformer) {
		source.Add(pod("shop", "a"))
		source.Add(pod("shop", "b"))
		h := start(t, informer)
		if got := strings.Split(h.take(), ", "); len(got) != 2 || !slices.Contains(got, "add shop/a true") || !slices.Contains(got, "add shop/b true") {
			t.Errorf("at first the handler received %q", got)
		}
		source.ModifyDropWatch(pod("shop", "a", "x=1"))
		source.DeleteDropWatch(pod("shop", "b"))
		source.AddDropWatch(pod("shop", "c"))
		source.ResetWatch()
		<-time.After(time.Minute) // the reflector backs off
		got := strings.Split(h.take(), ", ")
		slices.Sort(got)
		if want := "add shop/c false, lose shop/b, update shop/a"; strings.Join(got, ", ") != want {
			t.Errorf("after the reset the handler received %q, not %q", got, want)
		}
		source.Modify(pod("shop", "c", "x=1"))
		if got, want := h.take(), "update shop/c"; got != want {
			t.Errorf("after the new watch the handler received %q, not %q", got, want)
		}
	})
}

// TestStoreResourceVersion: the store has the version of the last event, also after a deletion.
func TestStoreResourceVersion(t *testing.T) {
	eachInformer(t, func(t *testing.T, source *fcache.FakeControllerSource, informer cache.SharedIndexInformer) {
		source.Add(pod("shop", "a"))
		h := start(t, informer)
		changed := pod("shop", "a", "x=1")
		for _, change := range []struct {
			want string
			make func()
		}{
			{"add shop/a true", func() {}},
			{"update shop/a", func() { source.Modify(changed) }},
			{"delete shop/a", func() { source.Delete(changed) }},
		} {
			change.make()
			if got := h.take(); got != change.want {
				t.Errorf("the handler received %q, not %q", got, change.want)
			}
			want := informer.LastSyncResourceVersion()
			if got := informer.GetStore().LastStoreSyncResourceVersion(); got != want || got == "" {
				t.Errorf("after %q the store has the version %q, not %q", change.want, got, want)
			}
		}
	})
}
