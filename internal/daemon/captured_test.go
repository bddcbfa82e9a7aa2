package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestCapturedItems: a pump gets the same item of a change that was just captured as of one that it reads from the journal.
func TestCapturedItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.labels = "app=web"
		var mu sync.Mutex
		captured := map[int64]capture.Version{}
		r.recorded = func(seq int64, v capture.Version) {
			mu.Lock()
			defer mu.Unlock()
			captured[seq] = v
		}
		r.write()
		compareItems(t, r, captured)
	})
}

// write makes changes of every operation but an absence, also while nothing records.
func (r *rig) write() {
	put := func(name, app string, spec map[string]any) {
		stamp := time.Now().UTC().Format(time.RFC3339)
		r.server.Put(configMaps, "shop", name, map[string]any{
			"metadata": map[string]any{
				"labels":          map[string]any{"app": app},
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Shop", "name": "main", "uid": "o", "controller": true}},
				"managedFields": []any{map[string]any{
					"manager": "helm", "operation": "Apply", "time": stamp, "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:a": map[string]any{}}},
				}},
			},
			"data": map[string]any{"password": fmt.Sprint("secret", spec["a"]), "plain": strings.Repeat("x", 300)},
			"spec": spec,
		})
	}
	list := func(images ...string) []any {
		var all []any
		for i, image := range images {
			all = append(all, map[string]any{"name": fmt.Sprint("c", i), "image": image})
		}
		return all
	}
	put("there", "web", map[string]any{"a": int64(1)})
	r.during(func() {
		put("web", "web", map[string]any{"a": int64(1), "containers": list("a:1", "b:1")})
		put("web", "web", map[string]any{"a": int64(2), "containers": list("a:2", "b:1", "c:1")})
		synctest.Wait()
		r.server.Put(configMaps, "shop", "new", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "data": map[string]any{"k": "v"}})
		synctest.Wait()
		put("web", "other", map[string]any{"a": int64(2)}) // left
		synctest.Wait()
		<-time.After(3 * time.Second)
		put("web", "web", map[string]any{"a": 2.5, "b": nil}) // entered
		put("there", "web", map[string]any{"a": int64(1)})    // only its version
		r.server.Delete(configMaps, "shop", "there")
		synctest.Wait()
		<-time.After(time.Second)
	})
	<-time.After(time.Minute)
	put("web", "web", map[string]any{"a": int64(3)})
	put("late", "web", map[string]any{"a": int64(3)})
	r.server.Compact()
	r.during(func() {
		put("web", "web", map[string]any{"a": int64(4)})
		synctest.Wait()
		r.server.Delete(configMaps, "shop", "web")
		synctest.Wait()
		<-time.After(time.Second)
	})
}

// compareItems compares what both kinds of pumps get.
func compareItems(t *testing.T, r *rig, captured map[int64]capture.Version) {
	t.Helper()
	j, err := journal.Open(t.Context(), r.path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	text := func(w io.Writer, c change.Change) error {
		_, err := fmt.Fprintf(w, "%+v %v %+v %s", c.Names, c.Before, c.Fields, c.Severity())
		return err
	}
	stores, err := openStores(t.Context(), j, r.rules, &Options{Text: text, Log: slog.New(slog.DiscardHandler), Sinks: []deliver.Options{
		{Sink: &counter{}}, {Sink: shower{&counter{}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer stores.close()
	ops := map[event.Op]int{}
	for e, err := range stores.readers[0].Rows(t.Context(), journal.Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		v, ok := captured[e.Seq]
		if !ok || !v.Exact {
			t.Errorf("change %d (%s of %s) is not shared: %v", e.Seq, e.Op, e.Name, ok)
			continue
		}
		ops[e.Op]++
		stores.recorded(e.Seq, v)
		for _, o := range stores.outboxes {
			got, ok := o.shelf.ready(t.Context(), e.Seq)
			want, err := o.maker.entry(t.Context(), &e)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			if d := cmp.Diff(shown(t, want), shown(t, got)); d != "" {
				t.Errorf("%s of %s, lean %t:\n%s", e.Op, e.Name, o.maker.lean, d)
			}
			if size := stores.groups[0].shelves.items[e.Seq].size; got.Size > size && o.maker == stores.groups[0].maker {
				t.Errorf("%s of %s keeps %d bytes, and counts as %d", e.Op, e.Name, got.Size, size)
			}
		}
	}
	if err := stores.readers[0].Close(); err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, err := range stores.outboxes[0].Read(t.Context(), 0) {
		if err != nil {
			t.Fatalf("a pump that keeps up reads the journal: %v", err)
		}
		read++
	}
	if read != len(captured) {
		t.Errorf("a pump that keeps up gets %d of %d changes", read, len(captured))
	}
	for _, op := range []event.Op{event.Snapshot, event.Created, event.Updated, event.Deleted, event.Left, event.Entered, event.Gap} {
		if ops[op] == 0 {
			t.Errorf("nothing was %s: %v", op, ops)
		}
	}
}

// shown is everything that a sink can see of an item.
func shown(t *testing.T, it deliver.Item) any {
	t.Helper()
	if it.Change == nil {
		return it.Seq
	}
	out := struct {
		Event event.Event
		JSON  string
		Text  string
		Meta  change.Meta
		Err   error
	}{Event: *it.Event(), Meta: it.Change.Meta, Err: it.Err}
	body, err := it.JSON()
	if err != nil {
		t.Fatal(err)
	}
	out.JSON = string(body)
	if it.Text != nil {
		var text strings.Builder
		if err := it.Text(&text); err != nil {
			t.Fatal(err)
		}
		out.Text = text.String()
	}
	return out
}
