package informer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestFieldIndex: in every kind of view, added early and late, a field's index finds what the field's values say.
func TestFieldIndex(t *testing.T) {
	t.Run("typed", func(t *testing.T) {
		fieldIndex(t, func(c *informer.Cluster) (*informer.Informer[*corev1.Pod], error) {
			return informer.For[*corev1.Pod](c)
		}, "spec.nodeName")
	})
	t.Run("typed from JSON", func(t *testing.T) {
		fieldIndex(t, func(c *informer.Cluster) (*informer.Informer[*corev1.Pod], error) {
			return informer.For[*corev1.Pod](c, func(o *informer.ViewOptions) {
				o.Transform = &informer.Transform{Name: "none", Rewrite: func(raw []byte) ([]byte, error) { return raw, nil }}
			})
		}, "spec.nodeName")
	})
	t.Run("unstructured", func(t *testing.T) {
		fieldIndex(t, func(c *informer.Cluster) (*informer.Informer[*unstructured.Unstructured], error) {
			return informer.Unstructured(c, pods)
		}, ".spec.nodeName")
	})
	t.Run("metadata", func(t *testing.T) {
		fieldIndex(t, func(c *informer.Cluster) (*informer.Informer[*metav1.PartialObjectMetadata], error) {
			return informer.Metadata(c, pods)
		}, `metadata.labels["app"]`)
	})
}

func fieldIndex[T informer.Object](t *testing.T, open func(*informer.Cluster) (*informer.Informer[T], error), path string) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		both := func(v string) map[string]any { return podFields(v, v) } // in the label, and in the spec
		for i := range 300 {
			server.Put(pods, fmt.Sprint("n", i%2), fmt.Sprint("p", i), both(fmt.Sprint("v", i%3)))
		}
		all := must(open(c))(t)
		early := must(informer.AddFieldIndex(all, path))(t)
		synced(t, c)
		late := must(informer.AddFieldIndex(all, path))(t)
		count := func(loop func(func(T, error) bool)) int {
			got, err := informer.Collect(loop)
			if err != nil {
				t.Error(err)
			}
			return len(got)
		}
		server.Put(pods, "n0", "p0", both("moved"))
		server.Put(pods, "n1", "p1", both(""))
		server.Delete(pods, "n0", "p2")
		synctest.Wait()
		for name, ix := range map[string]*informer.Index[T, string]{"early": early, "late": late} {
			if ix.Err() != nil || ix.Failed() > 0 {
				t.Errorf("%s: %v, %d failed", name, ix.Err(), ix.Failed())
			}
			got := fmt.Sprint(count(ix.Get("v0")), count(ix.Get("v1")), count(ix.In("n1", "v2")), count(ix.Get("moved")), count(ix.Get("none")), count(ix.Get("")))
			if got != "99 99 50 1 0 1" {
				t.Errorf("%s: found %s", name, got)
			}
			keys, err := ix.Keys("moved")
			if err != nil || len(keys) != 1 || keys[0] != (informer.Key{Namespace: "n0", Name: "p0"}) {
				t.Errorf("%s: keys %v, %v", name, keys, err)
			}
			values, err := ix.Values()
			slices.Sort(values)
			if got := strings.Join(slices.DeleteFunc(values, func(v string) bool { return strings.HasPrefix(v, "node-") || v == "one" || v == "two" }), " "); err != nil || got != " moved v0 v1 v2" {
				t.Errorf("%s: values %q, %v", name, got, err)
			}
		}
		early.Close()
		if _, err := early.Keys("moved"); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		if got := count(early.Get("moved")); got != 1 {
			t.Errorf("closed, it asks every object: %d", got)
		}
	})
}

// TestFieldIndexErrors: a path that cannot be an index is refused.
func TestFieldIndexErrors(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		_, err := informer.AddFieldIndex(all, "spec.nodename")
		if want := `add field index "spec.nodename" of *v1.Pod: spec: a v1.PodSpec has no field "nodename"; did you mean "nodeName"?`; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		loose := must(informer.Unstructured(c, pods))(t)
		_, err = informer.AddFieldIndex(loose, "spec..nodeName")
		if want := `add field index "spec..nodeName" of *unstructured.Unstructured: column 6: empty name`; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// TestFieldIndexDecodesNothing: what cannot be decoded elsewhere is found by its field, since nobody tried; where the field itself
// is not what the type says, the decoder decides.
func TestFieldIndexDecodesNothing(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, func(o *informer.ViewOptions) {
			o.Transform = &informer.Transform{Name: "none", Rewrite: func(raw []byte) ([]byte, error) { return raw, nil }}
		}))(t)
		ix := must(informer.AddFieldIndex(all, "spec.nodeName"))(t)
		synced(t, c)
		server.Put(pods, "a", "odd", map[string]any{"spec": map[string]any{"nodeName": "node-9"}, "status": "not an object"})
		synctest.Wait()
		if keys, err := ix.Keys("node-9"); err != nil || len(keys) != 1 || all.Source().Status()[0].DecodeErrors > 0 {
			t.Errorf("keys %v, %v", keys, err)
		}
		if got := keys(ix.Get("node-1")); got != "a/one a/two b/one" {
			t.Errorf("another value: %s", got)
		}
		if got := keys(ix.Get("node-9")); !strings.HasPrefix(got, "! decode pods a/odd") {
			t.Errorf("reading it: %s", got)
		}
		server.Put(pods, "a", "odd", map[string]any{"spec": map[string]any{"nodeName": 9}})
		synctest.Wait()
		if _, err := ix.Keys("node-1"); err == nil {
			t.Error("nobody knows what node it is on")
		}
	})
}
