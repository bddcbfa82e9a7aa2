package informer_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestReadsAfterClose: whatever closes a source, reads serve its last state, and waiting calls return ErrClosed.
func TestReadsAfterClose(t *testing.T) {
	for why, end := range map[string]func(cluster context.CancelFunc, all *informer.Informer[*corev1.Pod]){
		"the cluster's context": func(cancel context.CancelFunc, _ *informer.Informer[*corev1.Pod]) { cancel() },
		"Source.Close":          func(_ context.CancelFunc, all *informer.Informer[*corev1.Pod]) { all.Source().Close() },
		"Informer.Close":        func(_ context.CancelFunc, all *informer.Informer[*corev1.Pod]) { all.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			server := podServer()
			server.Put(pods, "b", "one", podFields("x", "node-2"))
			c := must(informer.NewCluster(server.Config(), informer.Options{}))(t)
			all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("a", "b")))(t)
			ix := informer.AddIndex(all, "node", byNode)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			if all.HasSynced() {
				t.Errorf("%s: synced before anything was listed", why)
			}
			go func() { done <- c.Run(ctx) }()
			if err := all.Wait(t.Context()); err != nil || !all.HasSynced() {
				t.Errorf("%s: Wait: %v, HasSynced %v", why, err, all.HasSynced())
			}
			synctest.Wait()
			before := keys(all.All())
			end(cancel, all)
			synctest.Wait()
			server.Delete(pods, "b", "one")
			synctest.Wait()
			if got := keys(all.All()); got != before || all.Len() != 21 || strings.Count(got, "/") != 21 {
				t.Errorf("%s: All has %s, and had %s", why, got, before)
			}
			for how, got := range map[string]string{
				"List": keys(all.List("b", nil)), "Index.Get": keys(ix.Get("node-2")), "Index.In": keys(ix.In("b", "node-2")),
				"Shared": keys(all.Shared().List("b", nil)),
			} {
				if got != "b/one" {
					t.Errorf("%s: %s has %q", why, how, got)
				}
			}
			if p, err := all.Get("b", "one"); err != nil || p.Spec.NodeName != "node-2" {
				t.Errorf("%s: Get: %v, %v", why, p, err)
			}
			if p, err := all.Get("b", "none"); !errors.Is(err, informer.ErrNotFound) {
				t.Errorf("%s: Get of an object that never existed: %v, %v", why, p, err)
			}
			n := 0
			for _, err := range all.Keys() {
				if n++; err != nil {
					t.Errorf("%s: Keys: %v", why, err)
				}
			}
			found, err := ix.Keys("node-2")
			values, err2 := ix.Values()
			if n != 21 || len(found) != 1 || err != nil || len(values) != 2 || err2 != nil || !all.HasSynced() {
				t.Errorf("%s: %d keys, of the index %v, %v, values %v, %v, synced %v", why, n, found, err, values, err2, all.HasSynced())
			}
			_, err = all.Subscribe("late", informer.SubscribeOptions{})
			for how, err := range map[string]error{
				"Wait": all.Wait(t.Context()), "Subscribe": err, "Mirror": all.Mirror(t.Context(), "late", &replica{}), "Changes": last(all.Changes(t.Context(), "late")),
			} {
				if !errors.Is(err, informer.ErrClosed) {
					t.Errorf("%s: %s: %v", why, how, err)
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// last returns the last error of a loop.
func last[T any](seq func(func(T, error) bool)) (err error) {
	for _, err = range seq {
		_ = err
	}
	return err
}

// orphans returns the names in namespace a without a pod: by a loop over all pods, by reading each, and by the keys. A
// caller that stops at an error deletes nothing by accident.
func orphans(all *informer.Informer[*corev1.Pod], names []string, during func()) map[string][]string {
	found := map[string][]string{}
	without := func(how string, err error, known map[string]bool) {
		if err != nil {
			return
		}
		for _, name := range names {
			if !known[name] {
				found[how] = append(found[how], name)
			}
		}
	}
	known := map[string]bool{}
	var failed error
	for p, err := range all.All() {
		if err != nil {
			failed = err
			break
		}
		known[p.Name] = true
		during()
	}
	without("All", failed, known)
	clear(known)
	failed = nil
	for k, err := range all.Keys() {
		if err != nil {
			failed = err
			break
		}
		known[k.Name] = true
		during()
	}
	without("Keys", failed, known)
	for _, name := range names {
		if _, err := all.Get("a", name); errors.Is(err, informer.ErrNotFound) {
			found["Get"] = append(found["Get"], name)
		}
		during()
	}
	return found
}

// TestOrphansAtShutdown: a collector that deletes objects without a pod deletes nothing because the program ends,
// whenever that happens.
func TestOrphansAtShutdown(t *testing.T) {
	for _, tc := range []struct {
		why     string
		server  func(*informertest.Server)
		orphans []string
	}{
		{"synced", func(*informertest.Server) {}, []string{"gone"}},
		{"never synced", func(s *informertest.Server) { s.SetDown(true) }, nil},
		{"one of two namespaces is forbidden", func(s *informertest.Server) {
			s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, nil, func(r *http.Request) bool {
				return strings.Contains(r.URL.Path, "/namespaces/a/")
			}))
		}, nil},
	} {
		for _, when := range []string{"before", "during"} {
			synctest.Test(t, func(t *testing.T) {
				server := podServer()
				server.Put(pods, "b", "other", podFields("x", "node-2"))
				tc.server(server)
				c := must(informer.NewCluster(server.Config(), informer.Options{}))(t)
				all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("a", "b")))(t)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- c.Run(ctx) }()
				synctest.Wait()
				end := func() {
					cancel()
					synctest.Wait()
				}
				if when == "before" || tc.orphans == nil {
					end()
				}
				for how, got := range orphans(all, []string{"p0", "p7", "p19", "gone"}, end) {
					if !slices.Equal(got, tc.orphans) {
						t.Errorf("%s, ended %s the loop: %s finds the orphans %q, want %q", tc.why, when, how, got, tc.orphans)
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		}
	}
}

// TestNeverSynced: a source closed before it had a state reports ErrClosed, not emptiness.
func TestNeverSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer()
		c := must(informer.NewCluster(server.Config(), informer.Options{}))(t)
		all := must(informer.For[*corev1.Pod](c))(t)
		ix := informer.AddIndex(all, "node", byNode)
		all.Close()
		_, get := all.Get("a", "p1")
		_, found := ix.Keys("node-1")
		_, values := ix.Values()
		for how, err := range map[string]error{
			"Get": get, "All": last(all.All()), "List": last(all.List("a", nil)), "Keys": last(all.Keys()),
			"Index.Get": last(ix.Get("node-1")), "Index.In": last(ix.In("a", "node-1")), "Index.Keys": found, "Index.Values": values,
		} {
			if !errors.Is(err, informer.ErrClosed) {
				t.Errorf("%s: %v", how, err)
			}
		}
	})
}
