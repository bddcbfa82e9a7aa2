package informer_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestIndexClosedWhileBuilding: building stops when the index is closed; otherwise the bubble would never be idle.
func TestIndexClosedWhileBuilding(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		gate, blocked := make(chan struct{}), make(chan struct{})
		var once sync.Once
		var calls atomic.Int64
		ix := informer.AddIndex(all, "node", func(p *corev1.Pod) []string {
			once.Do(func() { close(blocked) })
			calls.Add(1)
			<-gate
			return byNode(p)
		})
		<-blocked
		ix.Close()
		close(gate)
		synctest.Wait()
		if n := calls.Load(); n > 3 {
			t.Errorf("%d calls for 3 objects", n)
		}
		if _, err := ix.Keys("node-1"); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestIndexesComeAndGo: while two streams write, indexes of different types are added and removed, and a permanent
// index has only its own values.
func TestIndexesComeAndGo(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("a", "b")))(t)
		synced(t, c)
		stop := make(chan struct{})
		var writing sync.WaitGroup
		for _, ns := range []string{"a", "b"} {
			writing.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						server.Put(pods, ns, "one", podFields("x", fmt.Sprint("node-", i%2)))
					}
				}
			})
		}
		for range 100 {
			passing := informer.AddIndex(all, "names", func(p *corev1.Pod) []int { return []int{len(p.Name)} })
			stays := informer.AddIndex(all, "node", byNode)
			passing.Close()
			again := informer.AddIndex(all, "namespaces", func(p *corev1.Pod) []informer.Key { return []informer.Key{{Namespace: p.Namespace}} })
			n := 0
			for _, err := range stays.Get("node-1") {
				if n++; err != nil {
					t.Error(err)
				}
			}
			if n > 3 {
				t.Errorf("%d of 3 objects", n)
			}
			again.Close()
			stays.Close()
		}
		stays := informer.AddIndex(all, "node", byNode)
		close(stop)
		writing.Wait()
		server.Put(pods, "a", "one", podFields("x", "node-7"))
		server.Put(pods, "b", "one", podFields("x", "node-7"))
		synctest.Wait()
		if got, err := stays.Keys("node-7"); err != nil || len(got) != 2 {
			t.Errorf("found %v, %v", got, err)
		}
	})
}

// TestIndexIsReadWhenRanged: a loop that Get returned earlier reads the state at the time of use.
func TestIndexIsReadWhenRanged(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		ix := informer.AddIndex(all, "node", byNode)
		synctest.Wait()
		before := ix.Get("node-1")
		ix.Close()
		server.Put(pods, "a", "one", podFields("x", "node-2"))
		server.Put(pods, "c", "new", podFields("x", "node-1"))
		synctest.Wait()
		if got := keys(before); got != "a/two b/one c/new" {
			t.Errorf("found %s", got)
		}
	})
}
