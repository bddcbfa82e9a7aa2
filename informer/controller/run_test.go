package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// program returns a cluster with one widget, w, and an informer of it; they do not run yet.
func program(t *testing.T) (*informertest.Server, *informer.Cluster, *informer.Informer[object]) {
	t.Helper()
	server := informertest.NewServer()
	server.Serve(widgets, "Widget")
	server.Put(widgets, "n", "w", map[string]any{"spec": map[string]any{}})
	c, err := informer.NewCluster(server.Config(), informer.Options{AuditEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	i, err := informer.Unstructured(c, widgets)
	if err != nil {
		t.Fatal(err)
	}
	return server, c, i
}

// TestRun: the cluster serves until the last Reconcile has ended, and the first error ends everything.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cluster, i := program(t)
		ctx, cancel := context.WithCancel(t.Context())
		var late error
		ctl := controller.New("test", func(context.Context, controller.Key) (controller.Result, error) {
			cancel()
			<-time.After(time.Second)
			_, late = i.Get("n", "w")
			return controller.Result{}, nil
		}, controller.Options{}, controller.For(i))
		if err := controller.Run(ctx, cluster, ctl); err != nil || late != nil {
			t.Errorf("Run: %v; a read after the end: %v", err, late)
		}
		if ctx.Err() == nil {
			t.Error("nothing was reconciled")
		}
		if _, err := i.Subscribe("test", informer.SubscribeOptions{}); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("the cluster runs still: %v", err)
		}
	})
}

func TestRunFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cluster, i := program(t)
		server.Misbehave(informertest.Fault{Code: 403})
		fine := controller.New("fine", nothing, controller.Options{})
		ctl := controller.New("test", nothing, controller.Options{}, controller.For(i))
		if err := controller.Run(t.Context(), cluster, fine, ctl); err == nil || !strings.HasPrefix(err.Error(), "controller test: wait for caches: sync widgets.example.com: ") {
			t.Errorf("Run: %v", err)
		}
		if err := controller.Run(t.Context(), cluster); err == nil {
			t.Error("a cluster ran twice")
		}
	})
}

// TestIncomplete: a controller without a name or a function is an error at once.
func TestIncomplete(t *testing.T) {
	for _, c := range []*controller.Controller{
		controller.New("test", nil, controller.Options{}), controller.New("", nothing, controller.Options{}),
	} {
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "it needs a name and a Reconcile") {
			t.Errorf("Run: %v", err)
		}
	}
}

// TestWaits: a controller that waits logs why, and continues.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cluster, i := program(t)
		server.SetDown(true)
		var log strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		ctl := controller.New("test", func(context.Context, controller.Key) (controller.Result, error) {
			n++
			return controller.Result{}, nil
		}, controller.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, controller.For(i))
		done := make(chan error)
		go func() { done <- controller.Run(ctx, cluster, ctl) }()
		<-time.After(25 * time.Second)
		server.SetDown(false)
		<-time.After(2 * time.Minute)
		cancel()
		if err := <-done; err != nil || n != 1 {
			t.Errorf("Run: %v, after %d reconciles", err, n)
		}
		if lines := strings.Count(log.String(), "\n"); lines < 2 ||
			strings.Count(log.String(), `msg="waiting for caches" controller=test error="sync widgets.example.com: `) != lines {
			t.Errorf("logged:\n%s", log.String())
		}
	})
}

// TestWaitsForRun: Cluster.Run was not called.
func TestWaitsForRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, i := program(t)
		var log strings.Builder
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		ctl := controller.New("test", nothing, controller.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, controller.For(i))
		if err := ctl.Run(ctx); err != nil || !strings.Contains(log.String(), "Cluster.Run was not called") {
			t.Errorf("Run: %v; logged %s", err, log.String())
		}
	})
}
