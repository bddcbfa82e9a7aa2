package informer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// written returns the result of a write.
func written(namespace, name, version string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetResourceVersion(version)
	o.SetLabels(labels)
	return o
}

// awaiting runs a test with a synced informer of widgets.
func awaiting(t *testing.T, o informer.SourceOptions, test func(t *testing.T, s *informertest.Server, i *informer.Informer[*unstructured.Unstructured], stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		server.Put(widgets, "n", "a", nil)
		c, err := informer.NewCluster(server.Config(), informer.Options{AuditEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Source(widgets, o)
		if err != nil {
			t.Fatal(err)
		}
		i, err := informer.Unstructured(c, widgets, informer.On(s))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		if err := i.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		test(t, server, i, cancel)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestAwait: once Await returns, reads show the write, however late the watch is.
func TestAwait(t *testing.T) {
	awaiting(t, informer.SourceOptions{}, func(t *testing.T, s *informertest.Server, i *informer.Informer[*unstructured.Unstructured], _ func()) {
		s.SetDown(true)
		rv := s.Put(widgets, "n", "a", spec(2))
		deleted := s.Put(widgets, "n", "b", nil)
		s.Delete(widgets, "n", "b")
		returned := make(chan error)
		go func() { returned <- i.Await(t.Context(), written("n", "a", rv, nil)) }()
		<-time.After(20 * time.Second)
		synctest.Wait()
		select {
		case err := <-returned:
			t.Fatalf("it returned while the server was away: %v", err)
		default:
		}
		s.SetDown(false)
		if err := <-returned; err != nil {
			t.Fatal(err)
		}
		if o, err := i.Get("n", "a"); err != nil || o.GetResourceVersion() != rv {
			t.Errorf("read %v, %v; want version %s", o, err, rv)
		}
		if err := i.Await(t.Context(), written("n", "b", deleted, nil)); err != nil {
			t.Errorf("an object deleted meanwhile: %v", err)
		}
		if err := i.Await(t.Context(), written("n", "a", "1", nil)); err != nil {
			t.Errorf("an old version: %v", err)
		}
	})
}

// TestAwaitEnds: Await does not wait for versions that cannot come, or only until ctx ends; the error then says why.
func TestAwaitEnds(t *testing.T) {
	o := informer.SourceOptions{Selection: informer.Selection{
		Namespaces: []string{"n"}, Labels: "app=web", Keep: func(_, name string) bool { return name != "dropped" },
	}}
	labels := map[string]string{"app": "web"}
	awaiting(t, o, func(t *testing.T, s *informertest.Server, i *informer.Informer[*unstructured.Unstructured], stop func()) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for why, o := range map[string]*unstructured.Unstructured{
			"another namespace": written("m", "a", "999999", labels),
			"other labels":      written("n", "a", "999999", nil),
			"a key not kept":    written("n", "dropped", "999999", labels),
		} {
			if err := i.Await(ctx, o); err != nil {
				t.Errorf("%s: %v", why, err)
			}
		}
		if err := i.Await(ctx, written("n", "a", "", labels)); err == nil || !strings.Contains(err.Error(), "no resource version") {
			t.Errorf("an object that was not written: %v", err)
		}
		err := i.Await(ctx, written("n", "a", "999999", labels))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "await version 999999 of widgets.example.com n/a: the cache is at version") {
			t.Errorf("a version that does not come: %v", err)
		}
		returned := make(chan error)
		go func() { returned <- i.Await(context.Background(), written("n", "a", "999999", labels)) }()
		synctest.Wait()
		stop()
		if err := <-returned; !errors.Is(err, informer.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestAwaitNewHistory: after a restored backup, the version of a write may never come.
func TestAwaitNewHistory(t *testing.T) {
	awaiting(t, informer.SourceOptions{}, func(t *testing.T, s *informertest.Server, i *informer.Informer[*unstructured.Unstructured], _ func()) {
		backup := s.Snapshot()
		rv := s.Put(widgets, "n", "a", spec(2))
		if err := i.Await(t.Context(), written("n", "a", rv, nil)); err != nil {
			t.Fatal(err)
		}
		returned := make(chan error)
		go func() { returned <- i.Await(t.Context(), written("n", "a", rv+"0", nil)) }()
		synctest.Wait()
		s.Restore(backup)
		s.Cut()
		if err := <-returned; err != nil {
			t.Error(err)
		}
	})
}
