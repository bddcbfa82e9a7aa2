package change

import (
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// byName is a schema of which every list is a map by name.
type byName struct{}

func (byName) Field(string) diff.Schema        { return byName{} }
func (byName) Elem() diff.Schema               { return byName{} }
func (byName) Default(string) any              { return nil }
func (byName) List() (diff.ListType, []string) { return diff.ListMap, []string{"name"} }

// TestReordered: another order of a list is a change, except where controllers write lists in any order. Nobody is known to
// have moved an element, whoever owns it.
func TestReordered(t *testing.T) {
	rules, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	names := func(names ...any) []any {
		var list []any
		for _, n := range names {
			list = append(list, map[string]any{"name": n})
		}
		return list
	}
	for field, quiet := range map[string]bool{"spec": false, "webhooks": false, "status": true, "metadata": true} {
		object := func(list []any) map[string]any {
			o := map[string]any{"metadata": map[string]any{}}
			if o[field] = list; field != "webhooks" {
				o[field] = map[string]any{"list": list}
			}
			return o
		}
		after := object(names("b", "a"))
		after["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "kubectl", "operation": "Update", "fieldsV1": map[string]any{
			"f:" + field: map[string]any{},
		}}}
		c := Change{Meta: Meta{Op: event.Updated}}
		(&Builder{Quiet: rules}).Build(&c, object(names("a", "b")), after, byName{})
		if len(c.Fields) != 1 || c.Fields[0].Op != diff.Reorder || c.Fields[0].Manager != Unknown || c.Fields[0].Quiet != quiet || c.Quiet != quiet {
			t.Errorf("%s: quiet %v: %+v", field, c.Quiet, c.Fields)
		}
	}
}
