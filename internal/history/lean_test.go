package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestLean: without the objects of updates, a change is the same and takes less memory.
func TestLean(t *testing.T) {
	many := func(value int) string {
		var b strings.Builder
		for i := range 1200 {
			fmt.Fprintf(&b, `,"f%04d":%d`, i, value)
		}
		return b.String()
	}
	spec := `"spec":{"a":"` + strings.Repeat("x", 500) + `"}`
	object := func(rest string) string {
		return `{"kind":"Thing","metadata":{"managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:status":{"f:x":{}}}}]},` + spec + rest + `}`
	}
	p := newPast(t)
	p.add("",
		row(event.Created, "1", "", object("")),
		row(event.Updated, "2", object(""), object(`,"status":{"x":1}`)),
		row(event.Updated, "3", object(`,"status":{"x":1}`), object(`,"status":{"x":2}`)),
		row(event.Updated, "4", object(`,"status":{"x":2}`), object(many(1))),
		row(event.Updated, "5", object(many(1)), object(many(2))),
		row(event.Updated, "6", object(many(2)), object(`,"status":{"phase":"Failed"}`)),
		row(event.Deleted, "7", object(`,"status":{"phase":"Failed"}`), ""),
	)
	for e, err := range p.r.Rows(t.Context(), journal.Query{OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before, after, err := e.Contents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		whole, full, err := p.tell.Make(t.Context(), &e, before, after, false)
		if err != nil {
			t.Fatal(err)
		}
		lean, size, err := p.tell.Make(t.Context(), &e, before, after, true)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(change.Event("c", &whole), change.Event("c", &lean)); d != "" {
			t.Errorf("%s (-whole +lean):\n%s", e.ResourceVersion, d)
		}
		if failed := e.ResourceVersion == "6"; failed != (lean.Severity() == event.Failure) {
			t.Errorf("%s: the severity is %s", e.ResourceVersion, lean.Severity())
		}
		if differs := e.Op.Differs(); differs == (lean.Before != nil || lean.After != nil) {
			t.Errorf("%s: the objects are there: %v", e.ResourceVersion, !differs)
		}
		if e.ResourceVersion == "3" && size > full-500 {
			t.Errorf("%d bytes were decoded, %d with the objects", size, full)
		}
		if n := len(lean.Fields); e.ResourceVersion == "5" && (n != 1 || len(lean.Fields[0].To.(map[string]any)) < 1200+3) {
			t.Errorf("a change of the whole object has %d fields, or not the whole object", n)
		}
	}
}
