package informer_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

func byNode(p *corev1.Pod) []string {
	switch p.Spec.NodeName {
	case "panic":
		panic("as asked")
	case "none":
		return nil
	case "both":
		return []string{"node-1", "node-2", "node-1"}
	}
	return []string{p.Spec.NodeName}
}

func found(ix *informer.Index[*corev1.Pod, string], value string) string { return keys(ix.Get(value)) }

func TestIndex(t *testing.T) {
	var reported []string
	o := informer.Options{Hooks: informer.Hooks{IndexError: func(s informer.Stream, k informer.Key, err error) {
		reported = append(reported, fmt.Sprintf("%s %s: %v", s.Resource.Resource, k.Name, err))
	}}}
	bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("a", "b")))(t)
		ix := informer.AddIndex(all, "node", byNode)
		synced(t, c)
		want := func(why, node, keys string) {
			t.Helper()
			synctest.Wait()
			if got := found(ix, node); got != keys {
				t.Errorf("%s: %s has %q, want %q", why, node, got, keys)
			}
		}
		want("over both streams", "node-1", "a/one a/two b/one")
		server.Put(pods, "a", "two", podFields("x", "node-2"))
		want("it moved away", "node-1", "a/one b/one")
		want("it moved here", "node-2", "a/two")
		server.Put(pods, "a", "two", podFields("x", "both"))
		want("two values, one of them twice", "node-1", "a/one a/two b/one")
		server.Put(pods, "a", "two", podFields("x", "none"))
		want("no value", "node-1", "a/one b/one")
		server.Delete(pods, "a", "one")
		server.Put(pods, "a", "one", podFields("x", "node-2"))
		want("the same name with a new UID", "node-2", "a/one")
		server.Put(pods, "b", "one", podFields("x", "panic"))
		want("the function panics: in no place", "node-1", "")
		if p, err := all.Get("b", "one"); err != nil || p.Spec.NodeName != "panic" || ix.Failed() != 1 {
			t.Errorf("the object is there nevertheless: %v %v, %d failures", p, err, ix.Failed())
		}
		if len(reported) != 1 || reported[0] != "pods one: index node: panic with a string" {
			t.Errorf("reported %q", reported)
		}
		server.Delete(pods, "a", "one")
		want("deleted", "node-2", "")
		values, err := ix.Values()
		if err != nil || len(values) != 0 {
			t.Errorf("values without objects: %v %v", values, err)
		}
		ix.Close()
		ix.Close()
		if _, err := ix.Keys("node-1"); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestIndexAddedLate: an index added to cached objects answers correctly at any time, and reports that it is being
// built.
func TestIndexAddedLate(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		for i := range 600 { // more than one step
			server.Put(pods, "many", fmt.Sprint("p", i), podFields("x", fmt.Sprint("node-", i%3)))
		}
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		gate, blocked := make(chan struct{}), make(chan struct{})
		var once sync.Once
		ix := informer.AddIndex(all, "node", func(p *corev1.Pod) []string {
			if p.Name == "p300" && p.Labels["late"] == "" {
				once.Do(func() { close(blocked) })
				<-gate
			}
			return byNode(p)
		})
		<-blocked
		if _, err := ix.Keys("node-0"); !errors.Is(err, informer.ErrIndexBuilding) {
			t.Errorf("while it is being built: %v", err)
		}
		if p, err := all.Get("many", "p300"); err != nil || p.Name != "p300" {
			t.Error("readers go on")
		}
		server.Put(pods, "many", "p1", podFields("x", "node-9"))
		server.Delete(pods, "many", "p4")
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if ix.Err() != nil {
			t.Fatalf("it is built: %v", ix.Err())
		}
		for node, n := range map[string]int{"node-0": 200, "node-1": 201, "node-2": 200, "node-9": 1} {
			got, err := ix.Keys(node)
			if err != nil || len(got) != n {
				t.Errorf("%s has %d, want %d: %v", node, len(got), n, err)
			}
		}
		values, _ := ix.Values()
		slices.Sort(values)
		if got := strings.Join(values, " "); got != "node-0 node-1 node-2 node-9" {
			t.Errorf("values %s", got)
		}
	})
}

// TestIndexScans: before the index is built, Get examines every object.
func TestIndexScans(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		gate := make(chan struct{})
		var first sync.Once
		ix := informer.AddIndex(all, "node", func(p *corev1.Pod) []string {
			first.Do(func() { <-gate })
			return byNode(p)
		})
		synctest.Wait()
		got := make(chan string)
		go func() { got <- found(ix, "node-1") }()
		close(gate)
		if keys := <-got; keys != "a/one a/two b/one" {
			t.Errorf("found %s", keys)
		}
	})
}

// TestIndexValues: values that cannot be map keys, or cannot be found again, do no harm.
func TestIndexValues(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		loose := informer.AddIndex(all, "loose", func(p *corev1.Pod) []any {
			if p.Name == "two" {
				return []any{[]string{"cannot be compared"}}
			}
			return []any{p.Name, 7}
		})
		nan := informer.AddIndex(all, "nan", func(*corev1.Pod) []float64 { return []float64{math.NaN(), 1} })
		synced(t, c)
		synctest.Wait()
		if got := keys(loose.Get(7)); got != "a/one b/one" || loose.Failed() == 0 { // twice for a version that was arriving
			t.Errorf("found %s, %d failed", got, loose.Failed())
		}
		if values, err := nan.Values(); err != nil || len(values) != 1 {
			t.Errorf("values %v, %v", values, err)
		}
	})
}
