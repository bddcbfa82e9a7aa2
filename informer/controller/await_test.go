package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/tattler-dev/tattler/informer/controller"
)

// TestCreatesTwo shows a classic bug: a controller creates a child that its cache does not show yet a second time. With
// Await it creates one.
func TestCreatesTwo(t *testing.T) {
	for await, want := range map[bool]int{false: 2, true: 1} {
		play(t, 1, func(r *rig) {
			client := dynamic.NewForConfigOrDie(r.server.Config()).Resource(parts).Namespace("n")
			for _, i := range []interface{ Wait(context.Context) error }{r.widgets, r.parts} {
				if err := i.Wait(r.Context()); err != nil {
					r.Fatal(err)
				}
			}
			r.server.Mute(true) // the watch lags, as under load
			_, end := r.run(controller.Options{}, func(ctx context.Context, k controller.Key) (controller.Result, error) {
				for _, err := range r.parts.List("n", nil) {
					return controller.Result{}, err // a part exists
				}
				part := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "example.com/v1", "kind": "Part", "metadata": map[string]any{"generateName": k.Name + "-"},
				}}
				part, err := client.Create(ctx, part, metav1.CreateOptions{})
				if err != nil || !await {
					return controller.Result{RequeueAfter: 100 * time.Millisecond}, err
				}
				return controller.Result{RequeueAfter: 100 * time.Millisecond}, r.parts.Await(ctx, part)
			}, controller.For(r.widgets))
			<-time.After(150 * time.Millisecond)
			r.server.Mute(false)
			<-time.After(time.Minute)
			if err := end(); err != nil {
				t.Error(err)
			}
			if got := len(r.server.Objects(parts)); got != want {
				t.Errorf("Await %v: %d parts, want %d", await, got, want)
			}
		})
	}
}

// TestUpdate: after a conflict, an update is repeated on the new state.
func TestUpdate(t *testing.T) {
	play(t, 1, func(r *rig) {
		client := dynamic.NewForConfigOrDie(r.server.Config()).Resource(widgets).Namespace("n")
		tries := 0
		get := func(ctx context.Context) (object, error) { return client.Get(ctx, "w000", metav1.GetOptions{}) }
		write := func(ctx context.Context, o object) (object, error) {
			return client.Update(ctx, o, metav1.UpdateOptions{})
		}
		add := func(o object) (bool, error) {
			if tries++; tries == 1 {
				r.put("w000", 10) // a concurrent write
			}
			n, _, err := unstructured.NestedInt64(o.Object, "spec", "n")
			if err != nil {
				return false, fmt.Errorf("read: %w", err)
			}
			return true, unstructured.SetNestedField(o.Object, n+1, "spec", "n")
		}
		o, err := controller.Update(r.Context(), get, add, write)
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "n"); n != 11 || tries != 2 {
			t.Errorf("%d after %d tries", n, tries)
		}
		before := r.server.Version()
		if _, err = controller.Update(r.Context(), get, func(object) (bool, error) { return false, nil }, write); err != nil || r.server.Version() != before {
			t.Errorf("nothing to write: %v", err)
		}
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if _, err = controller.Update(ctx, get, add, write); err == nil {
			t.Error("it wrote after ctx ended")
		}
	})
}
