package informer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// bubble runs a test in a synctest bubble, with a server that has pods and widgets, and a running cluster.
func bubble(t *testing.T, o informer.Options, test func(*testing.T, *informertest.Server, *informer.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(pods, "Pod")
		server.Serve(widgets, "Widget")
		for _, k := range []informer.Key{{"a", "one"}, {"a", "two"}, {"b", "one"}} {
			server.Put(pods, k.Namespace, k.Name, podFields(k.Name, "node-1"))
			server.Put(widgets, k.Namespace, k.Name, spec(1))
		}
		cluster, err := informer.NewCluster(server.Config(), o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cluster.Run(ctx) }()
		test(t, server, cluster)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func podFields(app, node string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{
			"labels":        map[string]any{"app": app},
			"managedFields": []any{map[string]any{"manager": "test", "operation": "Update"}},
		},
		"spec": map[string]any{"nodeName": node},
	}
}

// must returns v, or fails the test.
func must[V any](v V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func synced(t *testing.T, c *informer.Cluster) {
	t.Helper()
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func keys[T informer.Object](seq iter.Seq2[T, error]) string {
	var all []string
	for o, err := range seq {
		if err != nil {
			all = append(all, "! "+err.Error())
			continue
		}
		all = append(all, o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestReads(t *testing.T) {
	for _, storage := range []informer.Storage{informer.CompactStorage, informer.AutoStorage, informer.LiveStorage} {
		bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			all := must(informer.For[*corev1.Pod](c, informer.WithStorage(storage)))(t)
			synced(t, c)
			for range 3 { // cold, and then hot in more than one way
				p, err := all.Get("a", "two")
				if err != nil || p.Name != "two" || p.Spec.NodeName != "node-1" || p.Kind != "Pod" || p.APIVersion != "v1" {
					t.Fatalf("storage %d: Get = %+v, %v", storage, p, err)
				}
				p.Spec.NodeName = "scribbled"
				shared, err := all.Shared().Get("a", "two")
				again, _ := all.Shared().Get("a", "two")
				if err != nil || shared != again || shared.Spec.NodeName != "node-1" {
					t.Errorf("storage %d: shared objects differ, or were written to: %v", storage, shared)
				}
				for p, err := range all.List("a", nil) {
					if err != nil {
						t.Fatal(err)
					}
					p.Spec.NodeName = "scribbled"
				}
			}
			if got := keys(all.All()); got != "a/one a/two b/one" || all.Len() != 3 {
				t.Errorf("All: %s, Len %d", got, all.Len())
			}
			if got := keys(all.List("", labels.SelectorFromSet(labels.Set{"app": "one"}))); got != "a/one b/one" {
				t.Errorf("List by label: %s", got)
			}
			if got := keys(all.List("a", labels.SelectorFromSet(labels.Set{"app": "one"}))); got != "a/one" {
				t.Errorf("List by namespace and label: %s", got)
			}
			for _, err := range all.All() {
				if err != nil {
					t.Error(err)
				}
				break // a loop may be left
			}
			if _, err := all.Get("a", "none"); !errors.Is(err, informer.ErrNotFound) || !apierrors.IsNotFound(err) || err.Error() != `pods "a/none" not found` {
				t.Errorf("Get of a missing object: %v", err)
			}
			server.Put(pods, "a", "two", podFields("two", "node-2"))
			synctest.Wait()
			if storage == informer.LiveStorage {
				kept := hotBytes(t, c)
				for i := range 20 {
					server.Put(pods, "a", "two", podFields("two", fmt.Sprint("node-", i)))
				}
				server.Put(pods, "a", "two", podFields("two", "node-2"))
				synctest.Wait()
				if now := hotBytes(t, c); kept == 0 || now == 0 || now > kept { // more parts may be shared by now
					t.Errorf("live storage has %d bytes, and after updates %d", kept, now)
				}
			}
			if p, _ := all.Get("a", "two"); p.Spec.NodeName != "node-2" {
				t.Errorf("storage %d: an old version is read: %v", storage, p.Spec.NodeName)
			}
		})
	}
}

// TestAutoStorage: objects of repeated lists are kept decoded until they are no longer read.
func TestAutoStorage(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.WithStorage(informer.AutoStorage)))(t)
		synced(t, c)
		keys(all.All())
		if n := hotBytes(t, c); n != 0 {
			t.Errorf("%d bytes are kept after a single list", n)
		}
		for range 30 {
			keys(all.All())
			<-time.After(time.Minute)
		}
		kept := hotBytes(t, c)
		if kept == 0 {
			t.Error("nothing is kept of objects listed every minute")
		}
		<-time.After(16 * time.Minute)
		if n := hotBytes(t, c); n != 0 {
			t.Errorf("%d bytes are kept 15 min after the last read, %d before", n, kept)
		}
		if got := keys(all.All()); got != "a/one a/two b/one" {
			t.Errorf("All: %s", got)
		}
	})
}

// hotBytes returns the size of the only source's decoded objects.
func hotBytes(t *testing.T, c *informer.Cluster) int64 {
	t.Helper()
	var text strings.Builder
	if err := c.WriteStatus(&text); err != nil {
		t.Fatal(err)
	}
	var status struct{ Sources []struct{ HotBytes int64 } }
	if err := json.Unmarshal([]byte(text.String()), &status); err != nil || len(status.Sources) != 1 {
		t.Fatalf("%v in %s", err, text.String())
	}
	return status.Sources[0].HotBytes
}

// TestViews: one source serves views of several types; unsuitable views are refused with a reason.
func TestViews(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		source := must(c.Source(pods, informer.SourceOptions{DropManagedFields: true}))(t)
		typed := must(informer.For[*corev1.Pod](c, informer.On(source)))(t)
		maps := must(informer.Unstructured(c, pods, informer.On(source)))(t)
		metas := must(informer.Metadata(c, pods, informer.On(source)))(t)
		synced(t, c)
		p, _ := typed.Get("a", "one")
		u, _ := maps.Get("a", "one")
		m, _ := metas.Get("a", "one")
		if p.UID == "" || p.UID != u.GetUID() || p.UID != m.UID || m.Kind != "PartialObjectMetadata" || u.GetKind() != "Pod" {
			t.Errorf("views differ:\n%v\n%v\n%v", p.ObjectMeta, u.Object, m)
		}
		if len(p.ManagedFields)+len(u.GetManagedFields())+len(m.ManagedFields) > 0 {
			t.Error("managed fields were to be dropped")
		}
		a, b := must(informer.For[*corev1.Pod](c))(t), must(informer.For[*corev1.Pod](c))(t)
		if a.Source() != b.Source() || a.Source() == source {
			t.Error("views without options share the default source")
		}
		if own := must(informer.For[*corev1.Pod](c, informer.WithLabels("app=one")))(t); own.Source() == a.Source() {
			t.Error("a view with a selection has a source of its own")
		}
		binary := must(c.Source(pods, informer.SourceOptions{Format: informer.Protobuf}))(t)
		partial := must(c.Source(pods, informer.SourceOptions{MetadataOnly: true}))(t)
		other := must(c.Source(widgets, informer.SourceOptions{}))(t)
		refused := func(why, text string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", why, err)
			}
		}
		_, err := informer.Unstructured(c, pods, informer.On(binary))
		refused("maps lose nothing, and protobuf has no unknown fields", "need JSON", err)
		_, err = informer.For[*corev1.Pod](c, informer.On(partial))
		refused("a whole object cannot be made of metadata", "only metadata", err)
		_, err = informer.For[*corev1.Pod](c, informer.On(other))
		refused("another resource", "the source holds widgets", err)
		_, err = informer.For[*corev1.Pod](c, informer.On(source), informer.InNamespaces("a"))
		refused("a conflicting option", "do not apply", err)
		_, err = informer.For[*unstructured.Unstructured](c)
		refused("a type without a kind", "a pointer to a struct", errors.Join(err, errors.New("a pointer to a struct")))
		a.Close()
		a.Close()
		if _, err := b.Subscribe("still", informer.SubscribeOptions{}); err != nil {
			t.Errorf("the other view's source was closed: %v", err)
		}
		b.Close()
		if _, err := b.Subscribe("over", informer.SubscribeOptions{}); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("the last view closes the default source: %v", err)
		}
		again := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		if again.Len() != 3 {
			t.Error("the default source opens again")
		}
	})
}

// TestProtobuf: typed views request it, are lossless in it, and work without it.
func TestProtobuf(t *testing.T) {
	var lossy atomic.Int64
	o := informer.Options{Hooks: informer.Hooks{LossyDecode: func(informer.Stream) { lossy.Add(1) }}}
	for _, refusal := range []int{0, http.StatusNotAcceptable, http.StatusInternalServerError} {
		bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			var refused atomic.Int64
			if refusal != 0 {
				server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.Header.Get("Accept"), "protobuf") {
						return false
					}
					refused.Add(1)
					informertest.Refuse(w, int32(refusal), metav1.StatusReasonNotAcceptable, "no protobuf")
					return true
				})
			}
			typed := must(informer.For[*corev1.Pod](c))(t)
			metas := must(informer.Metadata(c, pods))(t)
			synced(t, c)
			server.Put(pods, "a", "one", podFields("one", "node-9"))
			synctest.Wait()
			p, err := typed.Get("a", "one")
			m, err2 := metas.Get("a", "one")
			if err != nil || err2 != nil || p.Spec.NodeName != "node-9" || m.Labels["app"] != "one" || lossy.Load() > 0 {
				t.Errorf("refusal %d: %v %v, %d lossy", refusal, p, m, lossy.Load())
			}
			if refusal != 0 && refused.Load() > 2 {
				t.Errorf("refusal %d: protobuf was asked for %d times, once for each source is enough", refusal, refused.Load())
			}
		})
	}
}

// TestUsersType: a custom resource with a Go type from the user's scheme.
func TestUsersType(t *testing.T) {
	bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*widget](c))(t)
		synced(t, c)
		w, err := all.Get("b", "one")
		if err != nil || w.Spec.V != 1 || w.Kind != "Widget" || w.APIVersion != "example.com/v1" {
			t.Errorf("got %+v, %v", w, err)
		}
	})
}

type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		V int64 `json:"v"`
	} `json:"spec"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// TestUndecodable: an object that does not fit the type is counted and reported, and is an error in every read, never an
// absence; nothing else suffers.
func TestUndecodable(t *testing.T) {
	var reported []error
	o := informer.Options{Scheme: widgetTypes(), Hooks: informer.Hooks{DecodeError: func(_ informer.Stream, err error) { reported = append(reported, err) }}}
	bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		server.Put(widgets, "a", "two", spec("a string"))
		all := must(informer.For[*widget](c))(t)
		bySize := informer.AddIndex(all, "v", func(w *widget) []int64 { return []int64{w.Spec.V} })
		synced(t, c)
		synctest.Wait() // the index may have come when objects were on their way
		reported = nil
		var bad *informer.DecodeError
		if w, err := all.Get("a", "two"); w != nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), "widgets.example.com a/two") {
			t.Errorf("Get says why, and of what: %v, %v", w, err)
		}
		two := informer.Key{Namespace: "a", Name: "two"}
		if bad.Key != two || bad.Stream.Resource != widgets || bad.Err == nil {
			t.Errorf("the error names %+v", bad)
		}
		undecodable := "! " + bad.Error()
		for how, got := range map[string]string{
			"All":                keys(all.All()),
			"List":               keys(all.List("", labels.Everything())),
			"List of its labels": keys(all.List("", must(labels.Parse("!app"))(t))),
			"Index.Get":          keys(bySize.Get(1)),
		} {
			if got != undecodable+" a/one b/one" {
				t.Errorf("%s: %s", how, got)
			}
		}
		if got := keys(bySize.In("a", 1)); got != undecodable+" a/one" {
			t.Errorf("Index.In: %s", got)
		}
		if got := keys(bySize.In("b", 1)); got != "b/one" {
			t.Errorf("Index.In another namespace: %s", got)
		}
		if found, err := bySize.Keys(1); len(found) != 2 || !errors.As(err, &bad) || bad.Key != two {
			t.Errorf("Index.Keys: %v, %v", found, err)
		}
		if values, err := bySize.Values(); len(values) != 1 || !errors.As(err, &bad) || bad.Key != two {
			t.Errorf("Index.Values: %v, %v", values, err)
		}
		n := 0
		for _, err := range all.Keys() {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if st := all.Source().Status()[0]; n != 3 || all.Len() != 3 || st.DecodeErrors != 9 || len(reported) != 8 {
			t.Errorf("%d keys, %d objects, counted %d, reported %v", n, all.Len(), st.DecodeErrors, reported)
		}
	})
}
