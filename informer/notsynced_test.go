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

// TestNotSynced: before the first list is complete, an object that is not found may exist, and reads say so.
func TestNotSynced(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		server.SetDown(true)
		all := must(informer.Unstructured(c, pods))(t)
		byNode := informer.AddIndex(all, "node", func(*unstructured.Unstructured) []string { return []string{"n"} })
		if _, err := all.Get("a", "one"); !errors.Is(err, informer.ErrNotSynced) {
			t.Errorf("Get: %v", err)
		}
		for what, last := range map[string]func() error{
			"All": func() (err error) {
				for _, err = range all.All() {
					continue
				}
				return err
			},
			"Keys": func() (err error) {
				for _, err = range all.Keys() {
					continue
				}
				return err
			},
			"Index.Get": func() (err error) {
				for _, err = range byNode.Get("n") {
					continue
				}
				return err
			},
			"Index.Keys":   func() error { _, err := byNode.Keys("n"); return err },
			"Index.Values": func() error { _, err := byNode.Values(); return err },
		} {
			if err := last(); !errors.Is(err, informer.ErrNotSynced) {
				t.Errorf("%s: %v", what, err)
			}
		}
		server.SetDown(false)
		synced(t, c)
		if _, err := all.Get("a", "none"); !errors.Is(err, informer.ErrNotFound) {
			t.Errorf("Get once it is synced: %v", err)
		}
		for _, err := range all.All() {
			if err != nil {
				t.Errorf("All once it is synced: %v", err)
			}
		}
	})
}

// TestWaitWithoutRun: the error mentions Cluster.Run if it was not called.
func TestWaitWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		c := must(informer.NewCluster(server.Config(), informer.Options{}))(t)
		view := must(informer.Unstructured(c, widgets))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for what, err := range map[string]error{"Cluster.Wait": c.Wait(ctx), "Wait": view.Wait(ctx)} {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Cluster.Run was not called") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestWaitWhileOneCloses: a source that is closed before it is synced has not synced; one that is closed later has.
func TestWaitWhileOneCloses(t *testing.T) {
	for _, before := range []bool{true, false} {
		bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			other := must(informer.Unstructured(c, pods, informer.InNamespaces("a")))(t)
			if !before {
				synctest.Wait()
			}
			server.SetDown(true)
			late := must(informer.Unstructured(c, widgets))(t)
			if before {
				other = must(informer.Unstructured(c, pods))(t)
			}
			done := make(chan error)
			go func() { done <- c.Wait(t.Context()) }()
			synctest.Wait()
			other.Close()
			synctest.Wait()
			server.SetDown(false)
			if err := <-done; errors.Is(err, informer.ErrClosed) != before || before && !strings.HasPrefix(err.Error(), "sync pods: ") || !before && err != nil {
				t.Errorf("closed before its sync %v: Wait: %v", before, err)
			}
			if !before && !late.HasSynced() {
				t.Error("it did not wait for the other")
			}
		})
	}
}

// TestKeyText: a key prints in kubectl's form.
func TestKeyText(t *testing.T) {
	for want, k := range map[string]informer.Key{"shop/web": {Namespace: "shop", Name: "web"}, "node-1": {Name: "node-1"}} {
		if k.String() != want {
			t.Errorf("%q, want %q", k.String(), want)
		}
	}
}
