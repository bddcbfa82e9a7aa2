package history

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture/quiet"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestSchemaComesLater: a kind's schema is recorded with its first update. Who has told a creation before,
// when there was none, compares by it from then on.
func TestSchemaComesLater(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(ctx, path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	r, err := journal.OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rules, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	tell := New(r, rules)

	kind := journal.Kind{Group: "example.com", Version: "v1", Resource: "things", Kind: "Thing", Namespaced: true}
	schema := `{"kind":{"properties":{"spec":{"properties":{"rules":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],
		"items":{"properties":{"id":{},"to":{}}}}}}}}}`
	old := `{"kind":"Thing","spec":{"rules":[{"id":"a","to":"1"},{"id":"b","to":"2"}]}}`
	row := func(op event.Op, version, before, after string) journal.Row {
		at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		return journal.Row{Before: []byte(before), After: []byte(after), Meta: journal.Meta{
			Op: op, Kind: kind, Namespace: "n", Name: "a", UID: "u", ResourceVersion: version, Time: at, At: at,
		}}
	}
	for _, b := range []journal.Batch{
		{Rows: []journal.Row{row(event.Created, "1", "", old)}},
		{
			Rows:    []journal.Row{row(event.Updated, "2", old, `{"kind":"Thing","spec":{"rules":[{"id":"b","to":"3"},{"id":"a","to":"1"}]}}`)},
			Schemas: map[journal.Kind][]byte{kind: []byte(schema)},
		},
	} {
		b.Stream, b.Head = journal.Stream{GroupResource: "things.example.com"}, journal.Head{Version: "2", At: time.Now()}
		done, err := j.Append(ctx, []journal.Batch{b})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range r.Rows(ctx, journal.Query{After: done.Last - 1}) {
			if err != nil {
				t.Fatal(err)
			}
			c, err := tell.Change(ctx, &e)
			if err != nil {
				t.Fatal(err)
			}
			if e.Op != event.Updated {
				continue
			}
			paths := map[string]bool{}
			for _, f := range c.Fields {
				paths[f.Path.String()] = true
			}
			if !paths["spec.rules[id=b].to"] {
				t.Errorf("the update is compared without the schema: %v", paths)
			}
		}
	}
}
