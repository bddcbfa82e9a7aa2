package informer_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestLaggingReadersOfLiveStorage: objects decoded for a lagging reader do not stay in the set of decoded objects.
func TestLaggingReadersOfLiveStorage(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, func(o *informer.ViewOptions) {
			o.Storage, o.Hot = informer.LiveStorage, 16<<10
		}))(t)
		s := must(all.Shared().Subscribe("slow", informer.SubscribeOptions{Mode: informer.Every}))(t)
		defer s.Stop()
		synced(t, c)
		for range 3 {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		pinned := hotBytes(t, c)
		const updates = 100
		for i := range updates {
			server.Put(pods, "a", "one", podFields("x", fmt.Sprint("node-", i)))
		}
		synctest.Wait()
		last := hotBytes(t, c)
		for range updates {
			change, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := change.New(); err != nil {
				t.Fatal(err)
			}
		}
		s.Stop() // its budget for shared objects goes with it
		if now := hotBytes(t, c); now > pinned+16<<10 {
			t.Errorf("%d bytes of decoded objects at first, %d with all updates, then %d", pinned, last, now)
		}
	})
}

// TestUIDsDoNotPinObjects: keeping the UIDs of changes keeps no objects in memory.
func TestUIDsDoNotPinObjects(t *testing.T) {
	const objects, size = 200, 20 << 10
	noise := make([]byte, size/2) // incompressible
	source := rand.NewChaCha8([32]byte{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, how := range []string{"subscription", "feed"} {
		bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			for i := range objects {
				_, _ = source.Read(noise)
				server.Put(pods, "big", fmt.Sprint("p", i), map[string]any{"spec": map[string]any{"nodeName": hex.EncodeToString(noise)}})
			}
			all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("big")))(t)
			synced(t, c)
			var uids []types.UID
			var versions []string
			if how == "feed" {
				f := must(feed.Join(all.Source(), "uids", 0))(t)
				for len(uids) < objects {
					b := must(f.Next(t.Context()))(t)
					for _, d := range b.Deltas {
						uids, versions = append(uids, d.UID), append(versions, d.New.ResourceVersion)
					}
				}
				f.Close()
			} else {
				s := must(all.Subscribe("uids", informer.SubscribeOptions{}))(t)
				for range objects {
					c := must(s.Next(t.Context()))(t)
					uids, versions = append(uids, c.UID), append(versions, c.ResourceVersion())
				}
				s.Stop()
			}
			for i := range objects {
				server.Delete(pods, "big", fmt.Sprint("p", i))
			}
			synctest.Wait()
			with := heap()
			runtime.KeepAlive(uids)
			runtime.KeepAlive(versions)
			if without := heap(); with > without+objects*size/20 {
				t.Errorf("%s: %d UIDs and versions keep %d KiB", how, objects, (with-without)>>10)
			}
		})
	}
}

// TestIndexValuesDoNotPinObjects: an index keeps its values, not the text of their objects.
func TestIndexValuesDoNotPinObjects(t *testing.T) {
	t.Run("string", func(t *testing.T) { indexDoesNotPin(t, func(v string) string { return v }) })
	t.Run("named", func(t *testing.T) { indexDoesNotPin(t, func(v string) types.UID { return types.UID(v) }) })
	t.Run("struct", func(t *testing.T) {
		indexDoesNotPin(t, func(v string) informer.Key { return informer.Key{Namespace: "n", Name: v} })
	})
	t.Run("array", func(t *testing.T) { indexDoesNotPin(t, func(v string) [2]string { return [2]string{v, v} }) })
	t.Run("interface", func(t *testing.T) { indexDoesNotPin(t, func(v string) any { return v }) })
}

func indexDoesNotPin[K comparable](t *testing.T, key func(string) K) {
	t.Helper()
	const objects, size = 200, 20_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		for i := range objects {
			server.Put(pods, "big", fmt.Sprint("p", i), map[string]any{"metadata": map[string]any{"annotations": map[string]any{
				"team": fmt.Sprint("team ", i), "noise": strings.Repeat("x", size),
			}}})
		}
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("big")))(t)
		ix := informer.AddIndex(all, "team", func(p *corev1.Pod) []K { return []K{key(p.Annotations["team"])} })
		synced(t, c)
		synctest.Wait()
		if found, err := ix.Keys(key("team 7")); err != nil || len(found) != 1 {
			t.Errorf("found %v, %v", found, err)
		}
		with := heap()
		ix.Close()
		runtime.KeepAlive(ix)
		if without := heap(); with > without+objects*size/20 {
			t.Errorf("the index keeps %d KiB", (with-without)>>10)
		}
	})
}

// TestLiveFromTheStart: LiveStorage keeps the objects of the first list decoded, even if the list is faster than the call
// that opens the view.
func TestLiveFromTheStart(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		for i := range 1000 {
			all := must(informer.For[*corev1.Pod](c, informer.WithStorage(informer.LiveStorage)))(t)
			synced(t, c)
			if hotBytes(t, c) == 0 {
				t.Errorf("attempt %d: nothing is kept decoded", i)
				return
			}
			all.Close()
			synctest.Wait()
		}
	})
}
