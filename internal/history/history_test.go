package history

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// past is a journal with a writer and a Builder.
type past struct {
	*testing.T
	j    *journal.Journal
	r    *journal.Reader
	tell *Builder
}

func newPast(t *testing.T) *past {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), j.Close()); err != nil {
			t.Error(err)
		}
	})
	rules, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	return &past{t, j, r, New(r, rules)}
}

var things = journal.Kind{Group: "example.com", Version: "v1", Resource: "things", Kind: "Thing", Namespaced: true}

func row(op event.Op, version, before, after string) journal.Row {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return journal.Row{Before: []byte(before), After: []byte(after), Meta: journal.Meta{
		Op: op, Kind: things, Namespace: "n", Name: "a", UID: "u", ResourceVersion: version, Time: at, At: at, Manager: "kubectl",
	}}
}

func (p *past) add(schema string, rows ...journal.Row) {
	p.Helper()
	b := journal.Batch{Stream: journal.Stream{GroupResource: "things.example.com"}, Head: journal.Head{Version: "2", At: time.Now()}, Rows: rows}
	if schema != "" {
		b.Schemas = map[journal.Kind][]byte{things: []byte(schema)}
	}
	historytest.Judge(rows)
	if _, err := p.j.Append(p.Context(), []journal.Batch{b}); err != nil {
		p.Fatal(err)
	}
}

// changes returns the changes after a sequence number.
func (p *past) changes(after int64) (all []change.Change) {
	p.Helper()
	for e, err := range p.r.Rows(p.Context(), journal.Query{After: after, OldestFirst: true}) {
		if err != nil {
			p.Fatal(err)
		}
		c, err := p.tell.Change(p.Context(), &e)
		if err != nil {
			p.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func paths(c change.Change) string {
	var all []string
	for _, f := range c.Fields {
		all = append(all, f.Path.String())
	}
	return strings.Join(all, " ")
}

// keyed is a schema in which the rules of a thing have the given key.
func keyed(by string) string {
	return `{"kind":{"properties":{"spec":{"properties":{"rules":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["` + by + `"],
		"items":{"properties":{"id":{},"to":{}}}}}}}}}`
}

// TestSchemaChanges: if a kind's schema changes, later changes are compared by the new one, and earlier ones as they were
// delivered, by whichever Builder and in any order.
func TestSchemaChanges(t *testing.T) {
	p := newPast(t)
	states := []string{
		`{"kind":"Thing","spec":{"rules":[{"id":"a","to":"1"},{"id":"b","to":"2"}]}}`,
		`{"kind":"Thing","spec":{"rules":[{"id":"b","to":"2"},{"id":"c","to":"1"}]}}`,
		`{"kind":"Thing","spec":{"rules":[{"id":"d","to":"2"},{"id":"c","to":"1"}]}}`,
		`{"kind":"Thing","spec":{"rules":[{"id":"e","to":"2"},{"id":"c","to":"1"}]}}`,
	}
	p.add(keyed("id"), row(event.Updated, "2", states[0], states[1]))
	if got := paths(p.changes(0)[0]); got != "spec.rules[id=a] spec.rules[id=c]" {
		t.Errorf("by id: %s", got)
	}
	p.add(keyed("to"), row(event.Updated, "3", states[1], states[2]))
	if got := paths(p.changes(1)[0]); got != "spec.rules[to=\"2\"].id" {
		t.Errorf("by what the definition says now: %s", got)
	}
	p.add("", row(event.Updated, "4", states[2], states[3]))
	if got := paths(p.changes(2)[0]); got != "spec.rules[to=\"2\"].id" {
		t.Errorf("as before: %s", got)
	}
	p.add(keyed("to")) // as a daemon does after a restart
	rules, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, tell := range []*Builder{p.tell, New(p.r, rules)} {
		var got []string
		for e, err := range p.r.Rows(t.Context(), journal.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			c, err := tell.Change(t.Context(), &e)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, paths(c))
		}
		if got, want := strings.Join(got, "; "), `spec.rules[to="2"].id; spec.rules[to="2"].id; spec.rules[id=a] spec.rules[id=c]`; got != want {
			t.Errorf("read again: %s, want %s", got, want)
		}
	}
}

// TestPurged: a change whose previous state is unknown says so, instead of showing everything as new.
func TestPurged(t *testing.T) {
	p := newPast(t)
	a, b := `{"kind":"Thing","metadata":{"managedFields":[]},"spec":{"to":"1"}}`, `{"kind":"Thing","metadata":{"managedFields":[]},"spec":{"to":"2"}}`
	seen := func(seconds int, r journal.Row) journal.Row {
		r.At = r.At.Add(time.Duration(seconds) * time.Second)
		return r
	}
	gone := row(event.Deleted, "5", b, "")
	gone.UID = "u2"
	born := row(event.Created, "4", "", b)
	born.UID = "u2"
	p.add("", seen(0, row(event.Created, "1", "", a)), seen(0, born), seen(10, row(event.Updated, "2", a, b)), seen(10, gone), seen(11, row(event.Updated, "3", b, a)))
	cut := time.Date(2026, 11, 21, 10, 0, 5, 0, time.UTC)
	if err := p.j.Purge(t.Context(), journal.Purge{Until: cut}, nil); err != nil {
		t.Fatal(err)
	}
	all := p.changes(0)
	if len(all) != 3 {
		t.Fatalf("%d changes", len(all))
	}
	if c := all[0]; !c.Blind || len(c.Fields) > 0 || c.Before != nil || c.After["spec"].(map[string]any)["to"] != "2" || c.Quiet || c.Manager != "kubectl" {
		t.Errorf("an update: %+v", c)
	}
	if c := all[1]; !c.Blind || c.Before != nil || c.Op != event.Deleted || c.Name != "a" {
		t.Errorf("a deletion: %+v", c)
	}
	if c := all[2]; c.Blind || paths(c) != "spec.to" {
		t.Errorf("the next update: %+v", c)
	}
	for i, want := range []bool{true, true, false} {
		if e := change.Event("prod", &all[i]); e.Data.Truncated != want || len(e.Data.Changes) > 0 == want {
			t.Errorf("event %d: %+v", i, e.Data)
		}
	}
}

// TestSchemaComesLater: a kind's schema is recorded with its first update. A Builder that read a creation before that uses
// the schema afterwards.
func TestSchemaComesLater(t *testing.T) {
	p := newPast(t)
	old := `{"kind":"Thing","spec":{"rules":[{"id":"a","to":"1"},{"id":"b","to":"2"}]}}`
	p.add("", row(event.Created, "1", "", old))
	p.changes(0)
	p.add(keyed("id"), row(event.Updated, "2", old, `{"kind":"Thing","spec":{"rules":[{"id":"b","to":"3"},{"id":"a","to":"1"}]}}`))
	if got := paths(p.changes(1)[0]); !strings.Contains(got, "spec.rules[id=b].to") {
		t.Errorf("the update is compared without the schema: %s", got)
	}
}

// TestConverted: a conversion reads as recorded: quiet, with its fields, without a manager or another time, and with its
// own id.
func TestConverted(t *testing.T) {
	p := newPast(t)
	states := []string{
		`{"kind":"Thing","metadata":{"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-11-21T09:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:color":{}}}}]},"spec":{"size":1}}`,
	}
	for _, color := range []string{"red", "blue"} {
		states = append(states, strings.Replace(states[0], `"size"`, `"color":"`+color+`","size"`, 1))
	}
	var rows []journal.Row
	for i := range 2 {
		r := row(event.Converted, "2", states[i], states[i+1])
		r.Manager, r.Quiet, r.Form, r.Sum = "?", true, uint64(i+1), uint64(i+1)
		rows = append(rows, r)
	}
	p.add("", rows...)
	ids := map[string]bool{}
	for e, err := range p.r.Rows(t.Context(), journal.Query{Quiet: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.tell.Change(t.Context(), &e)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Quiet || c.Manager != "?" || c.Managers != nil || paths(c) != "spec.color" || c.Fields[0].Manager != "?" || !c.Time.Equal(c.At) || !c.Since.IsZero() {
			t.Errorf("got %+v", c)
		}
		ev := change.Event("prod", &c)
		if ids[ev.ID] = true; ev.ID != e.ID || len(ev.Data.Changes) != 1 {
			t.Errorf("event %+v has not the id %s, or no change", ev, e.ID)
		}
	}
	if len(ids) != 2 {
		t.Errorf("ids of two conversions: %v", ids)
	}
}
