package informer_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// fragile is a user's type whose methods panic.
type fragile struct{ widget }

func (f *fragile) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &f.widget); err != nil {
		return err
	}
	if f.Spec.V == 2 {
		panic("a secret")
	}
	return nil
}

func (f *fragile) DeepCopyObject() runtime.Object {
	if f.Spec.V == 3 {
		panic("a secret")
	}
	return &fragile{f.widget}
}

// TestPanickingType: a panic in a type's methods becomes the object's error: it is counted and reported, and nothing
// else suffers.
func TestPanickingType(t *testing.T) {
	users := runtime.NewScheme()
	users.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, &fragile{})
	for _, storage := range []informer.Storage{informer.CompactStorage, informer.LiveStorage} {
		var reported []string
		o := informer.Options{Scheme: users, Hooks: informer.Hooks{DecodeError: func(_ informer.Stream, err error) { reported = append(reported, err.Error()) }}}
		bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			all := must(informer.For[*fragile](c, informer.WithStorage(storage)))(t)
			ix := informer.AddIndex(all, "v", func(f *fragile) []int64 { return []int64{f.Spec.V} })
			synced(t, c)
			s := must(all.Shared().Subscribe("test", informer.SubscribeOptions{SkipInitial: true}))(t)
			server.Put(widgets, "a", "one", spec(2))
			server.Put(widgets, "a", "two", spec(3))
			synctest.Wait()
			var bad *informer.DecodeError
			if _, err := all.Get("a", "one"); !errors.As(err, &bad) || !strings.Contains(err.Error(), "panic") || strings.Contains(err.Error(), "secret") {
				t.Errorf("UnmarshalJSON: %v", err)
			}
			for range 3 { // whichever read copies it
				_, _ = all.Get("a", "two")
			}
			if _, err := all.Get("a", "two"); !errors.As(err, &bad) || !strings.Contains(err.Error(), "copy object: panic") {
				t.Errorf("DeepCopyObject: %v", err)
			}
			if _, err := all.Shared().Get("a", "two"); err != nil {
				t.Errorf("a shared object is not copied: %v", err)
			}
			if got := keys(ix.Get(1)); strings.Count(got, "b/one") != 1 || !strings.Contains(got, "! decode widgets.example.com a/one") {
				t.Errorf("by index: %s", got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				synctest.Wait()
				cancel()
			}()
			var failed []string
			_ = s.Handle(ctx, informer.Handlers[*fragile]{
				OnUpdate: func(_, f *fragile) { failed = append(failed, "update "+f.Name) },
				OnError:  func(k informer.Key, _ error) { failed = append(failed, "error "+k.Name) },
			})
			if got := strings.Join(failed, ", "); got != "error one, update two" {
				t.Errorf("handlers: %s", got)
			}
			if st := all.Source().Status()[0]; st.State != informer.Watching || st.DecodeErrors != uint64(len(reported)) || len(reported) < 4 {
				t.Errorf("%+v, reported %q", st, reported)
			}
		})
	}
}
