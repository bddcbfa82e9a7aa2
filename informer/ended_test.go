package informer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestEndedContext: after ctx ends, nothing is delivered, however much is queued.
func TestEndedContext(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		subscribe := func() *informer.Subscription[*corev1.Pod] {
			return must(all.Subscribe("test", informer.SubscribeOptions{}))(t)
		}
		if change, err := subscribe().Next(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Next: %v, %v", change, err)
		}
		n := 0
		for change, err := range subscribe().All(ended) {
			if n++; change != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("All: %v, %v", change, err)
			}
		}
		for change, err := range all.Changes(ended, "test") {
			if n++; change != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("Changes: %v, %v", change, err)
			}
		}
		if n != 2 {
			t.Errorf("%d pairs, want one from each loop", n)
		}
		if err := subscribe().Handle(ended, informer.Handlers[*corev1.Pod]{OnAdd: func(p *corev1.Pod, _ bool) { t.Errorf("Handle: %s", p.Name) }}); !errors.Is(err, context.Canceled) {
			t.Errorf("Handle: %v", err)
		}
		stopped := subscribe()
		stopped.Stop()
		if err := stopped.Handle(t.Context(), informer.Handlers[*corev1.Pod]{}); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("Handle of a stopped subscription: %v", err)
		}
		r := &replica{}
		if err := all.Mirror(ended, "test", r); !errors.Is(err, context.Canceled) || len(r.objects) != 0 {
			t.Errorf("Mirror: %v, %v", r.objects, err)
		}

		half, cancel := context.WithCancel(t.Context())
		n = 0
		_ = subscribe().Handle(half, informer.Handlers[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) {
			n++
			cancel()
		}})
		if n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

// TestStopDropsTakenChanges: Stop also drops the rest of a batch.
func TestStopDropsTakenChanges(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		stopAfterOne(t, all, "Stop", (*informer.Subscription[*corev1.Pod]).Stop)
		stopAfterOne(t, all, "Close", func(*informer.Subscription[*corev1.Pod]) { all.Source().Close() })
		if s, err := all.Subscribe("late", informer.SubscribeOptions{}); s != nil || !errors.Is(err, informer.ErrClosed) {
			t.Errorf("Subscribe after the end: %v, %v", s, err)
		}
	})
}

func stopAfterOne(t *testing.T, all *informer.Informer[*corev1.Pod], why string, end func(*informer.Subscription[*corev1.Pod])) {
	t.Helper()
	s := must(all.Subscribe("test", informer.SubscribeOptions{}))(t)
	if _, err := s.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	end(s)
	if c, err := s.Next(t.Context()); !errors.Is(err, informer.ErrClosed) {
		t.Errorf("%s: %+v, %v", why, c, err)
	}
}

// TestResyncUnderLoad: a resync comes when it is due although the handlers have a backlog, and delivers only objects
// that they know, in the version that they know.
func TestResyncUnderLoad(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("a", "b")))(t)
		synced(t, c)
		for _, mode := range []informer.Mode{informer.Latest, informer.Every} {
			s := must(all.Subscribe("handlers", informer.SubscribeOptions{Mode: mode}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			known := map[informer.Key]string{} // what the handlers know
			resyncs, writes := 0, 0
			see := func(p *corev1.Pod) informer.Key { return informer.Key{Namespace: p.Namespace, Name: p.Name} }
			_ = s.Handle(ctx, informer.Handlers[*corev1.Pod]{
				OnAdd: func(p *corev1.Pod, _ bool) {
					if v, is := known[see(p)]; is {
						t.Errorf("%v was known at %s and is added", see(p), v)
					}
					known[see(p)] = p.ResourceVersion
				},
				OnUpdate: func(old, p *corev1.Pod) {
					if known[see(p)] != old.ResourceVersion {
						t.Errorf("%v is known at %q and updated from %s", see(p), known[see(p)], old.ResourceVersion)
					}
					known[see(p)] = p.ResourceVersion
					if old.ResourceVersion == p.ResourceVersion {
						resyncs++
					}
					if writes++; writes > 400 {
						cancel()
						return
					}
					for _, ns := range []string{"a", "b"} { // always busier than the handlers
						server.Put(pods, ns, "one", podFields("x", fmt.Sprint("node-", writes)))
						server.Put(pods, ns, fmt.Sprint("new-", mode, writes%7), podFields("x", fmt.Sprint("node-", writes)))
						if writes%5 == 0 {
							server.Delete(pods, ns, fmt.Sprint("new-", mode, writes%7))
						}
					}
					<-time.After(time.Second)
				},
				OnDelete: func(last *corev1.Pod) { delete(known, see(last)) },
				Resync:   10 * time.Second,
			})
			if resyncs == 0 {
				t.Errorf("mode %d: no resync", mode)
			}
			s.Stop()
		}
	})
}

// TestWaitAfterClose: a closed source is not synced.
func TestWaitAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer()
		c, err := informer.NewCluster(server.Config(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all := must(informer.For[*corev1.Pod](c))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synced(t, c)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		for name, err := range map[string]error{
			"Cluster.Wait": c.Wait(t.Context()), "Wait": all.Source().Wait(t.Context()),
			"WaitForLoad": all.Source().WaitForLoad(t.Context()),
		} {
			if !errors.Is(err, informer.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s, err := c.Source(pods, informer.SourceOptions{}); s != nil || !errors.Is(err, informer.ErrClosed) {
			t.Errorf("Source: %v, %v", s, err)
		}
	})
}

// TestWaitOfMany: a source that cannot sync is reported at once, although others hang; at the end of the wait,
// the error says why each is not synced.
func TestWaitOfMany(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		server.Intercept(refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, nil, always))
		for i := range 8 {
			must(c.Source(widgets, informer.SourceOptions{Selection: informer.Selection{Labels: fmt.Sprint("app=", i)}}))(t)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "sync widgets") {
			t.Errorf("at the end: %v", err)
		}
		server.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, nil, func(r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/pods")
		}))
		end := server.Misbehave(informertest.Fault{Resource: widgets, Effect: informertest.Hang})
		defer end()
		must(c.Source(pods, informer.SourceOptions{}))(t)
		began := time.Now()
		if err := c.Wait(t.Context()); !apierrors.IsForbidden(err) || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
