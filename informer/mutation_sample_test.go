package informer_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// heard records the calls of Hooks.Mutation.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(s informer.Stream, k informer.Key, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprint(s.Resource.Resource, " ", k, ": ", err))
}

// allChecked reports whether the environment enables checks of all shared objects.
func allChecked() bool {
	on, err := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))
	return err == nil && on
}

// sampling is bubble for a cluster that samples, with pods that share their labels.
func sampling(t *testing.T, storage informer.Storage, test func(*testing.T, *informertest.Server, *informer.Cluster, *informer.Informer[*corev1.Pod], *heard)) {
	t.Helper()
	if allChecked() {
		return
	}
	h := &heard{}
	o := informer.Options{AuditEvery: -1, Hooks: informer.Hooks{Mutation: h.add}}
	bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		for i := range 8 {
			server.Put(pods, "s", fmt.Sprint("x", i), podFields("same", "node"))
		}
		v := must(informer.For[*corev1.Pod](c, informer.WithStorage(storage)))(t).Shared()
		synced(t, c)
		test(t, server, c, v, h)
	})
}

// alike returns two pods of the namespace s that share their labels.
func alike(t *testing.T, v *informer.Informer[*corev1.Pod]) (a, b informer.Key) {
	t.Helper()
	seen := map[uintptr]string{}
	for p, err := range v.List("s", nil) {
		labels := reflect.ValueOf(must(p, err)(t).Labels).Pointer()
		if other, ok := seen[labels]; ok {
			return informer.Key{Namespace: "s", Name: other}, informer.Key{Namespace: "s", Name: p.Name}
		}
		seen[labels] = p.Name
	}
	t.Fatal("no two pods share their labels")
	return a, b
}

// often reads until an object has surely been sampled, and waits for the check.
func often(t *testing.T, c *informer.Cluster, read func()) {
	t.Helper()
	for range 2000 {
		read()
	}
	synctest.Wait()
	c.SyncMutations()
	elapse(5 * time.Second)
}

// TestMutationIsCountedAndRepaired: without DetectMutation, damage is counted and reported, and readers get correct
// objects again, including objects that share the part and indexes that a damaged part got into.
func TestMutationIsCountedAndRepaired(t *testing.T) {
	for _, storage := range []informer.Storage{informer.CompactStorage, informer.AutoStorage, informer.LiveStorage} {
		sampling(t, storage, func(t *testing.T, server *informertest.Server, c *informer.Cluster, v *informer.Informer[*corev1.Pod], h *heard) {
			written, sharing := alike(t, v)
			why := fmt.Sprint("pods ", written, `: a shared *v1.Pod was modified at metadata.labels["app"]; read by `)
			must(v.Get("s", written.Name))(t).Labels["app"] = "oops"
			server.Put(pods, "s", "late", podFields("same", "node"))
			synctest.Wait()
			ix := informer.AddIndex(v, "app", func(p *corev1.Pod) []string { return []string{p.Labels["app"]} })
			synctest.Wait()
			if keys := must(ix.Keys("oops"))(t); len(keys) < 2 {
				t.Errorf("storage %d: the index has only %v: they share nothing", storage, keys)
			}
			often(t, c, func() { must(v.Get("s", written.Name))(t) })
			named := func(found string) bool {
				return strings.HasPrefix(found, why) && strings.HasSuffix(found, "Get")
			}
			if !slices.ContainsFunc(h.all, named) {
				t.Errorf("storage %d: heard %q", storage, h.all)
			}
			if n := v.Source().Status()[0].Mutations; n != uint64(len(h.all)) {
				t.Errorf("storage %d: %d are counted, and %d heard", storage, n, len(h.all))
			}
			n := len(h.all)
			for p, err := range v.List("s", nil) {
				if err != nil || p.Labels["app"] != "same" {
					t.Errorf("storage %d: %v has %v: %v", storage, p.Name, p.Labels, err)
				}
			}
			often(t, c, func() { must(v.Get("s", written.Name))(t) })
			if len(h.all) != n {
				t.Errorf("storage %d: then heard %q", storage, h.all[n:])
			}
			if oops, same := must(ix.Keys("oops"))(t), must(ix.Keys("same"))(t); len(oops) != 0 || len(same) != 9 {
				t.Errorf("storage %d: the index has %v and %v", storage, oops, same)
			}
			if p := must(v.Get("s", sharing.Name))(t); p != must(v.Get("s", sharing.Name))(t) {
				t.Errorf("storage %d: nothing is kept decoded", storage)
			}
		})
	}
}

// TestMutationIsFoundOnEviction: objects evicted from the hot set are sampled as well, whoever read them.
func TestMutationIsFoundOnEviction(t *testing.T) {
	if allChecked() {
		return
	}
	h := &heard{}
	o := informer.Options{AuditEvery: -1, Hooks: informer.Hooks{Mutation: h.add}}
	bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		for i := range 200 {
			server.Put(pods, "s", fmt.Sprint("x", i), podFields("same", "node"))
		}
		v := must(informer.For[*corev1.Pod](c, func(o *informer.ViewOptions) { o.Hot = 32 << 10 }))(t).Shared()
		synced(t, c)
		unread := func(found string) bool { return !strings.Contains(found, "read by") }
		for round := 0; round < 50 && !slices.ContainsFunc(h.all, unread); round++ {
			for i := range 200 {
				must(v.Get("s", fmt.Sprint("x", i)))(t).Spec.NodeName = "oops"
			}
			c.SyncMutations()
			elapse(5 * time.Second)
		}
		if i := slices.IndexFunc(h.all, unread); i < 0 || !strings.HasSuffix(h.all[i], ": a shared *v1.Pod was modified at spec.nodeName") {
			t.Errorf("heard %q", h.all)
		}
	})
}

// TestNoFalseMutations: reading in any way is not reported as a mutation.
func TestNoFalseMutations(t *testing.T) {
	for _, storage := range []informer.Storage{informer.CompactStorage, informer.LiveStorage} {
		sampling(t, storage, func(t *testing.T, server *informertest.Server, c *informer.Cluster, v *informer.Informer[*corev1.Pod], h *heard) {
			private := must(informer.For[*corev1.Pod](c, informer.WithStorage(storage)))(t)
			i := 0
			often(t, c, func() {
				if i++; i%10 == 0 {
					server.Put(pods, "s", "x7", podFields("same", fmt.Sprint("node-", i)))
				}
				must(informer.Collect(v.List("s", nil)))(t)
				must(private.Get("s", "x7"))(t).Labels["app"] = "mine"
			})
			if len(h.all) > 0 {
				t.Errorf("heard %q", h.all)
			}
		})
	}
}

// TestLogsMutationsOnceAMinute: a handler that writes to its objects does so every time.
func TestLogsMutationsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		c := must(informer.NewCluster(informertest.NewServer().Config(), informer.Options{Log: slog.New(slog.NewTextHandler(&b, nil))}))(t)
		s := informer.Stream{Resource: pods, Namespace: "a"}
		for range 130 {
			c.ReportMutation(s, informer.Key{Namespace: "a", Name: "one"}, fmt.Errorf("it was"))
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], `msg="a shared object was modified" resource=pods namespace=a key=a/one error="it was" found=1`) ||
			!strings.Contains(lines[1], "found=60") {
			t.Errorf("logged\n%s", b.String())
		}
	})
}
