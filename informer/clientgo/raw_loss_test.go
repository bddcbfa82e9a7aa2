package clientgo

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestRawTransformsThatReturnNil: objects for which a transform returns nil are left out of undecoded responses, too,
// whether paged, streamed or watched; and a list takes effect only when the transform succeeds for all of its
// objects.
func TestRawTransformsThatReturnNil(t *testing.T) {
	for _, storage := range []Storage{Auto, Live} {
		for _, paged := range []bool{false, true} {
			t.Run(fmt.Sprint(storage, ", pages ", paged), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { rawTransformsThatLose(t, storage, paged) })
			})
		}
	}
}

func rawTransformsThatLose(t *testing.T, storage Storage, paged bool) {
	s := informertest.NewServer()
	s.Serve(pods, "Pod")
	put := func(name, app string) {
		s.Put(pods, "shop", name, map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": app}}})
	}
	put("a", "keep")
	put("b", "lose")
	put("c", "fail once")
	if paged {
		s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
	}
	e := must[*Engine](t)(New(s.Config(), Options{Storage: storage}))
	i := e.NewInformer(plain(t, s.Config(), e.HTTPClient()), &corev1.Pod{}, 0, nil)
	failed := false
	err := i.SetTransform(func(obj any) (any, error) {
		switch obj.(*corev1.Pod).Labels["app"] {
		case "lose":
			return (*corev1.Pod)(nil), nil
		case "lose, too":
			return nil, nil
		case "fail once":
			if !failed {
				failed = true
				return nil, errors.New("not yet")
			}
		}
		return obj, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	l := &eventLog{&events}
	if _, err := i.AddEventHandler(l); err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want, wantEvents []string) {
		t.Helper()
		slices.Sort(events)
		if got := names(i.GetStore().List()); !slices.Equal(got, want) || !slices.Equal(events, wantEvents) {
			t.Errorf("%s: has %q, want %q; events %q, want %q", when, got, want, events, wantEvents)
		}
		events = nil
	}
	start(t, i)
	if paged && i.HasSynced() { // a failed stream is followed by a list at once
		t.Error("synced without an object that the transform failed on")
	}
	pass(time.Minute)
	expect("after the list", []string{"a", "c"}, []string{"+a", "+c"})
	if !e.Stats().Informers[0].Raw {
		t.Error("it is decoded:", e.Stats().Informers[0].Decoded)
	}
	put("b", "keep")
	put("a", "lose")
	put("c", "lose, too")
	pass(time.Second)
	expect("after the watch", []string{"b"}, []string{"+b", "-a", "-c"})
	s.Delete(pods, "shop", "a")
	pass(time.Second)
	expect("after what was left out has gone", []string{"b"}, nil)
}

// eventLog records its notifications in short form.
type eventLog struct{ events *[]string }

func (l *eventLog) OnAdd(obj any, _ bool) { *l.events = append(*l.events, "+"+nameIn(obj)) }
func (l *eventLog) OnUpdate(_, obj any)   { *l.events = append(*l.events, "~"+nameIn(obj)) }
func (l *eventLog) OnDelete(obj any)      { *l.events = append(*l.events, "-"+nameIn(obj)) }

func nameIn(obj any) string {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	return obj.(*corev1.Pod).Name
}
