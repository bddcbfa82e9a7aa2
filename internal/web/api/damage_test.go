package api_test

import (
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/api"
)

// TestNotAnObject: a change whose content is not an object is reported as damaged, and the others are shown.
func TestNotAnObject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	b := journal.Batch{Stream: journal.Stream{GroupResource: "nodes"}, Head: journal.Head{Version: "9", At: ten}}
	for name, after := range map[string]string{"good": `{"metadata":{"name":"good"}}`, "garbage": "{"} {
		b.Rows = append(b.Rows, journal.Row{After: []byte(after), Meta: journal.Meta{Op: event.Created, Kind: nodes, Name: name, UID: name, ResourceVersion: name, Time: ten, At: ten}})
	}
	if _, err := j.Append(t.Context(), []journal.Batch{b}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := decode[api.Changes](t, serve(t, access.New(r), access.Everything{}, nil), "changes").Changes
	for _, c := range all {
		damaged := c.Error != nil && c.Error.Reason == api.ReasonDamaged
		if name := c.Event.Data.Resource.Name; damaged != (name == "garbage") {
			t.Errorf("%s: damaged: %t", name, damaged)
		}
	}
	if len(all) != 2 {
		t.Errorf("%d changes", len(all))
	}
}
