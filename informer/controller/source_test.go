package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// keys returns the keys that are reconciled while something happens, sorted, without duplicates.
func (r *rig) keys(source controller.Source, happens func()) string {
	r.Helper()
	var mu sync.Mutex
	var got []string
	_, end := r.run(controller.Options{}, func(_ context.Context, k controller.Key) (controller.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, k.String())
		return controller.Result{}, nil
	}, source)
	<-time.After(time.Second)
	mu.Lock()
	got = nil
	mu.Unlock()
	happens()
	<-time.After(time.Second)
	if err := end(); err != nil {
		r.Error(err)
	}
	slices.Sort(got)
	return fmt.Sprint(slices.Compact(got))
}

// part writes a part that a widget owns.
func (r *rig) part(name, owner, kind, group string, spec int) {
	r.server.Put(parts, "n", name, map[string]any{"spec": map[string]any{"n": int64(spec)}, "metadata": map[string]any{
		"ownerReferences": []any{
			map[string]any{"apiVersion": "v1", "kind": "Node", "name": "other", "uid": "u"},
			map[string]any{"apiVersion": group, "kind": kind, "name": owner, "uid": "u-" + owner, "controller": true},
		},
	}})
}

// TestSources: each source maps changes to the right keys.
func TestSources(t *testing.T) {
	play(t, 1, func(r *rig) {
		r.part("p", "a", "Widget", "example.com/v1", 1)
		owned := func() controller.Source { return controller.Owned(r.parts, r.widgets) }
		for _, tc := range []struct {
			why     string
			source  controller.Source
			happens func()
			want    string
		}{
			{"an object", controller.For(r.widgets), func() { r.put("w000", 2); r.server.Delete(widgets, "n", "w000") }, "[n/w000]"},
			{"an owner", owned(), func() { r.part("p", "a", "Widget", "example.com/v2", 2) }, "[n/a]"},
			{"an owner that changes: both", owned(), func() { r.part("p", "b", "Widget", "example.com/v1", 2) }, "[n/a n/b]"},
			{"an owner of another group: the one before", owned(), func() { r.part("p", "c", "Widget", "example.org/v1", 2) }, "[n/b]"},
			{"an owner of another kind", owned(), func() { r.part("p", "c", "Gadget", "example.com/v1", 2) }, "[]"},
			{"a deletion", owned(), func() {
				r.part("q", "d", "Widget", "example.com/v1", 1)
				<-time.After(time.Second)
				r.server.Delete(parts, "n", "q")
			}, "[n/d]"},
			{"any keys", controller.Map(r.widgets, func(o object) []controller.Key {
				return []controller.Key{key("x-" + o.GetName()), key("y")}
			}), func() { r.put("w1", 1) }, "[n/x-w1 n/y]"},
			{"each object of another informer", controller.Each(r.parts, r.widgets), func() {
				r.put("w2", 1)
				<-time.After(time.Second)
				r.part("z", "a", "Widget", "example.com/v1", 1)
			}, "[n/w1 n/w2]"},
		} {
			if got := r.keys(tc.source, tc.happens); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
			}
		}
	})
}

// TestOwnedByClusterScoped: a cluster-scoped owner of namespaced objects.
func TestOwnedByClusterScoped(t *testing.T) {
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	play(t, 0, func(r *rig) {
		r.server.Serve(nodes, "Node")
		r.server.Describe(nodes, true, nil, nil)
		owners, err := informer.Metadata(r.cluster, nodes)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		write := func() { n++; r.part("p", "a", "Node", "v1", n) }
		write()
		if got := r.keys(controller.Owned(r.parts, owners), write); got != "[a]" {
			t.Errorf("a cluster-scoped owner: %s", got)
		}
	})
}

// TestOwnedUnknown: a controller that cannot learn the kind of its owners says so, or waits while the server does not answer.
func TestOwnedUnknown(t *testing.T) {
	play(t, 0, func(r *rig) {
		end := r.server.Misbehave(informertest.Fault{On: informertest.Discovery, Code: 403})
		_, stop := r.run(controller.Options{}, nothing, controller.Owned(r.parts, r.widgets))
		<-time.After(time.Minute)
		if err := stop(); err == nil || !strings.Contains(err.Error(), "find the kind of widgets.example.com") {
			t.Errorf("Run: %v", err)
		}
		end()
		defer r.server.Misbehave(informertest.Fault{On: informertest.Discovery, Code: 503, Times: 30})()
		r.part("p", "a", "Widget", "example.com/v1", 1)
		if got := r.keys(controller.Owned(r.parts, r.widgets), func() { <-time.After(time.Minute) }); got != "[n/a]" {
			t.Errorf("after the server answers again: %s", got)
		}
		if !strings.Contains(r.log.String(), "find the kind of") {
			t.Errorf("logged %s", r.log.String())
		}
	})
}

// TestIndexed: a change is mapped to the objects that refer to it, by an index.
func TestIndexed(t *testing.T) {
	play(t, 0, func(r *rig) {
		refer := func(name, part string) {
			r.server.Put(widgets, "n", name, map[string]any{"spec": map[string]any{"part": part}})
		}
		refer("a", "p")
		refer("b", "p")
		refer("c", "q")
		byPart := informer.AddIndex(r.widgets, "part", func(o object) []string {
			part, _, _ := unstructured.NestedString(o.Object, "spec", "part")
			return []string{part}
		})
		indexed := func() controller.Source {
			return controller.Indexed(r.parts, byPart, func(o object) []string { return []string{o.GetName(), "none"} })
		}
		for _, tc := range []struct {
			why     string
			happens func()
			want    string
		}{
			{"an addition", func() { r.part("p", "x", "Widget", "example.com/v1", 1) }, "[n/a n/b]"},
			{"an update", func() { r.part("p", "x", "Widget", "example.com/v1", 2) }, "[n/a n/b]"},
			{"a reference that has moved", func() {
				refer("b", "q")
				<-time.After(time.Second)
				r.part("p", "x", "Widget", "example.com/v1", 3)
			}, "[n/a]"},
			{"a deletion", func() { r.server.Delete(parts, "n", "p") }, "[n/a]"},
		} {
			if got := r.keys(indexed(), tc.happens); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
			}
		}
	})
}

// TestIndexedWaits: no object is missed if the informer syncs late or the index is added late.
func TestIndexedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cluster, all := program(t)
		server.Serve(parts, "Part")
		server.Put(parts, "n", "p", nil)
		server.Misbehave(informertest.Fault{Resource: widgets, Code: 503, Times: 5})
		i, err := informer.Unstructured(cluster, parts)
		if err != nil {
			t.Fatal(err)
		}
		one := func(object) []int { return []int{1} }
		early := informer.AddIndex(all, "early", one)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var mu sync.Mutex
		got := map[string]int{}
		of := func(name string, index *informer.Index[object, int]) *controller.Controller {
			return controller.New(name, func(_ context.Context, k controller.Key) (controller.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				got[name+" "+k.String()]++
				return controller.Result{}, nil
			}, controller.Options{Log: slog.New(slog.DiscardHandler)}, controller.Indexed(i, index, one))
		}
		late := make(chan error)
		go func() {
			if err := all.Wait(ctx); err != nil {
				t.Error(err)
			}
			c := of("late", informer.AddIndex(all, "late", one)) // it is built in the background
			late <- c.Run(ctx)
		}()
		if err := errors.Join(controller.Run(ctx, cluster, of("early", early)), <-late); err != nil && !errors.Is(err, informer.ErrClosed) {
			t.Error(err)
		}
		if fmt.Sprint(got) != "map[early n/w:1 late n/w:1]" {
			t.Errorf("reconciled %v", got)
		}
	})
}

// TestEachWaits: Each waits for both informers, whichever syncs later.
func TestEachWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cluster, all := program(t)
		server.Serve(parts, "Part")
		server.Put(parts, "n", "p", nil)
		server.Misbehave(informertest.Fault{Resource: widgets, Code: 503, Times: 5})
		i, err := informer.Unstructured(cluster, parts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		c := controller.New("test", func(_ context.Context, k controller.Key) (controller.Result, error) {
			got = append(got, k.String())
			return controller.Result{}, nil
		}, controller.Options{Log: slog.New(slog.DiscardHandler)}, controller.Each(i, all))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := controller.Run(ctx, cluster, c); err != nil || fmt.Sprint(got) != "[n/w]" {
			t.Errorf("Run: %v; reconciled %v, want n/w", err, got)
		}
	})
}

// TestPredicates: predicates drop updates, never additions or deletions.
func TestPredicates(t *testing.T) {
	play(t, 0, func(r *rig) {
		write := func(name string, generation, n int, labels map[string]any) {
			r.server.Put(widgets, "n", name, map[string]any{
				"metadata": map[string]any{"generation": int64(generation), "labels": labels},
				"spec":     map[string]any{"n": int64(n), "list": []any{map[string]any{"name": "a", "v": int64(n)}}},
				"status":   map[string]any{"n": int64(generation + n)},
			})
		}
		reset := func() { write("w", 1, 1, map[string]any{"a": "1"}) }
		touches := controller.Touches[object]
		for _, tc := range []struct {
			why     string
			when    controller.Predicate[object]
			happens func()
			want    string
		}{
			{"the generation", controller.GenerationChanged[object], func() { write("w", 2, 1, nil) }, "[n/w]"},
			{"no generation changed", controller.GenerationChanged[object], func() { write("w", 1, 2, nil) }, "[]"},
			{"no generation at all", controller.GenerationChanged[object], func() {
				r.server.Put(widgets, "n", "old", nil)
				<-time.After(time.Second)
				r.server.Put(widgets, "n", "old", map[string]any{"data": map[string]any{"a": "b"}})
			}, "[n/old]"},
			{"a deletion", controller.GenerationChanged[object], func() { r.server.Delete(widgets, "n", "w") }, "[n/w]"},
			{"labels", controller.LabelsChanged[object], func() { write("w", 1, 1, map[string]any{"a": "2"}) }, "[n/w]"},
			{"no label", controller.LabelsChanged[object], func() { write("w", 2, 2, map[string]any{"a": "1"}) }, "[]"},
			{"a path", touches("spec.**"), func() { write("w", 1, 2, nil) }, "[n/w]"},
			{"another path", touches("spec.**"), func() { write("w", 2, 1, nil) }, "[]"},
			{"an element of a list", touches("spec.list[name=a].v"), func() { write("w", 1, 2, nil) }, "[n/w]"},
			{"one of two paths", touches("spec.x", "metadata.labels.a"), func() { write("w", 1, 1, map[string]any{"a": "2"}) }, "[n/w]"},
			{"any of two", controller.Any(controller.LabelsChanged[object], touches("spec.n")), func() { write("w", 1, 2, map[string]any{"a": "1"}) }, "[n/w]"},
			{"none of two", controller.Any(controller.LabelsChanged[object], touches("spec.x")), func() { write("w", 1, 2, map[string]any{"a": "1"}) }, "[]"},
		} {
			reset()
			if got := r.keys(controller.For(r.widgets, tc.when), tc.happens); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
			}
		}
	})
}

// TestDeletionBegins: GenerationChanged keeps the beginning of a deletion that finalizers delay.
func TestDeletionBegins(t *testing.T) {
	play(t, 0, func(r *rig) {
		kept := func(meta map[string]any) {
			meta["generation"], meta["finalizers"] = int64(1), []any{"example.com/x"}
			r.server.Put(widgets, "n", "w", map[string]any{"metadata": meta})
		}
		kept(map[string]any{})
		got := r.keys(controller.For(r.widgets, controller.GenerationChanged[object]), func() {
			kept(map[string]any{"deletionTimestamp": metav1.Now().UTC().Format(time.RFC3339)})
		})
		if got != "[n/w]" {
			t.Error(got)
		}
	})
}

// TestBadPath: an invalid path panics.
func TestBadPath(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	controller.Touches[object]("spec[")
}

// TestPanics: if a function of the program panics, the known keys are reconciled, the failure is logged, and everything
// else continues.
func TestPanics(t *testing.T) {
	play(t, 1, func(r *rig) {
		r.part("p", "a", "Widget", "example.com/v1", 1)
		owners := func(o object) []controller.Key {
			if name := metav1.GetControllerOfNoCopy(o).Name; name != "bad" {
				return []controller.Key{key(name)}
			}
			panic("bad")
		}
		var none []string
		predicate := func(*informer.Change[object]) (bool, error) { return none[0] == "", nil }
		for _, tc := range []struct {
			why, owner string
			when       []controller.Predicate[object]
			want       string
		}{
			{"the object after", "bad", nil, "[n/a]"},
			{"the object before", "b", nil, "[n/b]"},
			{"a predicate", "c", []controller.Predicate[object]{predicate}, "[n/b n/c]"},
		} {
			got := r.keys(controller.Map(r.parts, owners, tc.when...), func() { r.part("p", tc.owner, "Widget", "example.com/v1", 1) })
			if got != tc.want {
				t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
			}
		}
		for _, want := range []string{"cannot determine all keys of a change", "panic: bad", "predicate failed: the change is reconciled", "index out of range", "source_test.go"} {
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, r.log.String())
			}
		}
	})
}

// TestEnqueue: a key can be added at any time, even before Run.
func TestEnqueue(t *testing.T) {
	play(t, 0, func(r *rig) {
		var got []controller.Key
		c := controller.New("test", func(_ context.Context, k controller.Key) (controller.Result, error) {
			got = append(got, k)
			return controller.Result{}, nil
		}, controller.Options{})
		if c.Enqueue(key("early")); c.Len() != 1 {
			t.Errorf("%d keys wait", c.Len())
		}
		ctx, cancel := context.WithCancel(r.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		<-time.After(time.Second)
		c.Enqueue(key("late"))
		<-time.After(time.Second)
		cancel()
		if err := <-done; err != nil || fmt.Sprint(got) != "[n/early n/late]" {
			t.Errorf("%v, %v", got, err)
		}
		c.Enqueue(key("after the end"))
	})
}
