package feed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// run runs a test in a bubble, with a server that has one object and a running cluster.
func run(t *testing.T, test func(*testing.T, *informertest.Server, *informer.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		server.Put(widgets, "n", "a", nil)
		c, err := informer.NewCluster(server.Config(), informer.Options{AuditEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		test(t, server, c)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// next reads batches until one has deltas.
func next(t *testing.T, f *feed.Feed) feed.Batch {
	t.Helper()
	for {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Deltas) > 0 {
			return b
		}
	}
}

// TestCloseClosesItsOwnSource: Close closes a source that Open opened, and no other.
func TestCloseClosesItsOwnSource(t *testing.T) {
	run(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		f, err := feed.Open(c, widgets, "own", feed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		view, err := informer.Unstructured(c, widgets, informer.On(f.Source()))
		if err != nil {
			t.Fatal(err)
		}
		if b := next(t, f); b.Deltas[0].Op != informer.Added || b.Stream.Resource != widgets {
			t.Errorf("it begins with %+v", b)
		}
		joined, err := feed.Join(f.Source(), "joined", 0)
		if err != nil {
			t.Fatal(err)
		}
		if b := next(t, joined); !b.Deltas[0].Initial {
			t.Errorf("a feed that joins begins with %+v", b)
		}
		joined.Close()
		if _, err := joined.Next(t.Context()); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("Next of a closed feed: %v", err)
		}
		server.Put(widgets, "n", "b", nil)
		if b := next(t, f); b.Deltas[0].Key.Name != "b" {
			t.Errorf("then the other one has %+v", b)
		}
		if _, err := view.Get("n", "b"); err != nil {
			t.Errorf("a view of the source: %v", err)
		}
		f.Close()
		if err := f.Source().Wait(t.Context()); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("Wait after Close: %v", err)
		}
		if _, err := feed.Join(f.Source(), "late", 0); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("Join after Close: %v", err)
		}
	})
}

// TestOpenRefuses: Open refuses invalid sources and a closed cluster.
func TestOpenRefuses(t *testing.T) {
	c, err := informer.NewCluster(informertest.NewServer().Config(), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Open(c, schema.GroupVersionResource{}, "none", feed.Options{}); err == nil {
		t.Error("a feed of no resource")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Open(c, widgets, "late", feed.Options{}); !errors.Is(err, informer.ErrClosed) {
		t.Errorf("Open of a closed cluster: %v", err)
	}
}
