package informer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// widgetTypes is a scheme with the Go type of widgets.
func widgetTypes() *runtime.Scheme {
	users := runtime.NewScheme()
	users.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, &widget{})
	return users
}

// handling runs handlers of widgets that record their calls. The result waits until everything is idle and returns the
// calls since it was last called.
func handling(t *testing.T, s *informer.Subscription[*widget], only func(*informer.Handlers[*widget])) func() string {
	t.Helper()
	var calls []string
	note := func(f string, args ...any) { calls = append(calls, fmt.Sprintf(f, args...)) }
	h := informer.Handlers[*widget]{
		OnAdd:    func(w *widget, initial bool) { note("add %s %d %v", w.Name, w.Spec.V, initial) },
		OnUpdate: func(old, w *widget) { note("update %s %d>%d", w.Name, old.Spec.V, w.Spec.V) },
		OnDelete: func(last *widget) { note("delete %s %d", last.Name, last.Spec.V) },
		OnError:  func(k informer.Key, _ error) { note("error %s", k.Name) },
	}
	if only != nil {
		only(&h)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Handle(ctx, h)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return func() string {
		synctest.Wait()
		text := strings.Join(calls, ", ")
		calls = nil
		return text
	}
}

// TestHandlersOfUndecodableObjects: the handlers' calls add up, whatever is undecodable: each object that they know was
// added once, and is deleted once.
func TestHandlersOfUndecodableObjects(t *testing.T) {
	const bad = "a string" // the type has a number
	put := func(v any) func(*informertest.Server) {
		return func(s *informertest.Server) { s.Put(widgets, "a", "new", spec(v)) }
	}
	gone := func(s *informertest.Server) { s.Delete(widgets, "a", "new") }
	type step struct {
		do   func(*informertest.Server)
		want string
	}
	for _, tc := range []struct {
		why   string
		only  func(*informer.Handlers[*widget])
		steps []step
	}{
		{"repaired, it is new to the handlers", nil, []step{
			{put(bad), "error new"}, {put(2), "add new 2 false"}, {put(3), "update new 2>3"}, {gone, "delete new 3"},
		}},
		{"an object that they never received is not deleted", nil, []step{
			{put(bad), "error new"}, {put("worse"), "error new"}, {gone, "error new"},
		}},
		{"an object keeps its last state until it is repaired", nil, []step{
			{put(1), "add new 1 false"}, {put(bad), "error new"}, {put("worse"), "error new"}, {put(4), "update new 1>4"}, {gone, "delete new 4"},
		}},
		{"an object is deleted in the state that they have", nil, []step{
			{put(1), "add new 1 false"}, {put(bad), "error new"}, {gone, "delete new 1"},
		}},
		{"without OnUpdate", func(h *informer.Handlers[*widget]) { h.OnUpdate = nil }, []step{
			{put(bad), "error new"}, {put(2), "add new 2 false"}, {put(bad), "error new"}, {gone, "delete new 2"},
		}},
		{"nor for additions", func(h *informer.Handlers[*widget]) { h.OnAdd = nil }, []step{
			{put(bad), "error new"}, {put(2), ""}, {put(3), "update new 2>3"}, {gone, "delete new 3"},
		}},
	} {
		bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			all := must(informer.For[*widget](c))(t)
			synced(t, c)
			calls := handling(t, must(all.Subscribe("handlers", informer.SubscribeOptions{SkipInitial: true}))(t), tc.only)
			calls()
			for i, s := range tc.steps {
				s.do(server)
				if got := calls(); got != s.want {
					t.Errorf("%s, step %d: called %q, want %q", tc.why, i, got, s.want)
				}
			}
		})
	}
}

// TestHandlersSkipAnUndecodableObject: a skipped object of the initial state counts as new once it can be decoded.
func TestHandlersSkipAnUndecodableObject(t *testing.T) {
	bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		server.Put(widgets, "a", "one", spec("a string"))
		server.Put(widgets, "a", "two", spec("a string"))
		all := must(informer.For[*widget](c))(t)
		synced(t, c)
		calls := handling(t, must(all.Subscribe("handlers", informer.SubscribeOptions{SkipInitial: true}))(t), nil)
		calls()
		server.Put(widgets, "a", "one", spec(2))
		server.Delete(widgets, "a", "two")
		if got := calls(); got != "add one 2 false, error two" {
			t.Errorf("called %q", got)
		}
	})
}

// TestHandlersSynced: OnSynced comes once, after the state of every stream, whatever it contains, or at once if that was
// handled before.
func TestHandlersSynced(t *testing.T) {
	for _, tc := range []struct {
		why        string
		namespaces []string
		o          informer.SubscribeOptions
		want       string
	}{
		{"after all existing objects", []string{"a", "b"}, informer.SubscribeOptions{}, "add one true, add one true, add two true, synced"},
		{"where nothing is there", []string{"empty"}, informer.SubscribeOptions{}, "synced"},
		{"where that is skipped", []string{"a"}, informer.SubscribeOptions{SkipInitial: true}, "synced"},
	} {
		bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			all := must(informer.For[*widget](c, informer.InNamespaces(tc.namespaces...)))(t)
			s := must(all.Subscribe("handlers", tc.o))(t)
			var calls []string
			handle := func() (stop func()) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = s.Handle(ctx, informer.Handlers[*widget]{
						OnAdd:    func(w *widget, initial bool) { calls = append(calls, fmt.Sprintf("add %s %v", w.Name, initial)) },
						OnSynced: func() { calls = append(calls, "synced") },
					})
				}()
				synctest.Wait()
				return func() {
					cancel()
					<-done
				}
			}
			stop := handle()
			n := max(len(calls)-1, 0)
			slices.Sort(calls[:n]) // streams have no order
			if got := strings.Join(calls, ", "); got != tc.want {
				t.Errorf("%s: called %q, want %q", tc.why, got, tc.want)
			}
			calls = nil
			server.Put(widgets, tc.namespaces[0], "late", spec(1))
			synctest.Wait()
			stop()
			handle()()
			if got := strings.Join(calls, ", "); got != "add late false, synced" {
				t.Errorf("%s: then called %q", tc.why, got)
			}
		})
	}
}

// TestHandleAgain: a second call of Handle knows what the handlers of the first received.
func TestHandleAgain(t *testing.T) {
	bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*widget](c))(t)
		synced(t, c)
		s := must(all.Subscribe("handlers", informer.SubscribeOptions{SkipInitial: true}))(t)
		var calls []string
		handle := func(steps func()) string {
			calls = nil
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = s.Handle(ctx, informer.Handlers[*widget]{
					OnAdd: func(w *widget, _ bool) { calls = append(calls, fmt.Sprintf("add %s %d", w.Name, w.Spec.V)) },
					OnUpdate: func(old, w *widget) {
						calls = append(calls, fmt.Sprintf("update %s %d>%d", w.Name, old.Spec.V, w.Spec.V))
					},
					OnDelete: func(last *widget) { calls = append(calls, fmt.Sprintf("delete %s %d", last.Name, last.Spec.V)) },
					OnError:  func(k informer.Key, _ error) { calls = append(calls, "error "+k.Name) },
				})
			}()
			steps()
			synctest.Wait()
			cancel()
			<-done
			return strings.Join(calls, ", ")
		}
		put := func(name string, v any) {
			server.Put(widgets, "a", name, spec(v))
			synctest.Wait()
		}
		if got := handle(func() {
			put("new", 1)
			put("other", 2)
			put("new", "a string")
			put("other", "a string")
		}); got != "add new 1, add other 2, error new, error other" {
			t.Errorf("at first: called %q", got)
		}
		if got := handle(func() {
			server.Delete(widgets, "a", "new")
			put("other", 3)
		}); got != "delete new 1, update other 2>3" {
			t.Errorf("then: called %q", got)
		}
	})
}
