package informer_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestCollect: an undecodable object is an error that does not end the loop, and an unsynced source is not empty.
func TestCollect(t *testing.T) {
	bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, server *informertest.Server, cl *informer.Cluster) {
		for name, v := range map[string]any{"a": 1, "b": "a string", "c": 3} { // the type has a number
			server.Put(widgets, "shop", name, map[string]any{"spec": map[string]any{"v": v}})
		}
		view, err := informer.For[*widget](cl)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := informer.Collect(view.List("shop", nil))
		var names []string
		for _, w := range all {
			names = append(names, w.Name)
		}
		slices.Sort(names)
		var undecodable *informer.DecodeError
		if !slices.Equal(names, []string{"a", "c"}) || !errors.As(err, &undecodable) || undecodable.Key.Name != "b" {
			t.Errorf("got %v, %v", names, err)
		}
		if keys, err := informer.Collect(view.Keys()); len(keys) != 6 || err != nil {
			t.Errorf("got the keys %v, %v", keys, err)
		}

		unsynced, err := informer.NewCluster(server.Config(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		none, err := informer.Unstructured(unsynced, widgets)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := informer.Collect(none.All()); len(all) != 0 || !errors.Is(err, informer.ErrNotSynced) {
			t.Errorf("got %v, %v", all, err)
		}
	})
}
