package deliver

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

func sample(op event.Op) *event.Event {
	e := event.New("prod", time.Unix(1, 0), event.Data{
		Op:       op,
		Resource: event.Resource{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "2"},
		Changes:  []event.Change{{Path: "data.a", Op: "replace", From: "1", To: "2", Manager: "kubectl"}},
		Managers: []event.Manager{{Manager: "kubectl", Operation: "Update"}},
		Before:   map[string]any{"data": map[string]any{"a": "1"}},
		After:    map[string]any{"data": map[string]any{"a": "2"}},
		Observed: event.Observed{At: time.Unix(1, 0)},
	})
	return &e
}

func TestShape(t *testing.T) {
	for _, tc := range []struct {
		why     string
		op      event.Op
		include []Include
		want    string // the parts of data
	}{
		{"an update is lean", event.Updated, nil, "changes"},
		{"before is included", event.Updated, []Include{Before}, "before changes"},
		{"so is after", event.Updated, []Include{After}, "after changes"},
		{"and a patch", event.Updated, []Include{Patch}, "changes patch"},
		{"all three", event.Updated, []Include{Patch, Before, After}, "after before changes patch"},
		{"a created object has no before", event.Created, []Include{Before, After, Patch}, "after changes"},
		{"a snapshot neither", event.Snapshot, nil, "after changes"},
		{"nor an entered one", event.Entered, nil, "after changes"},
		{"a deleted object has no after", event.Deleted, []Include{After}, "before changes"},
		{"nor one that left", event.Left, nil, "before changes"},
		{"a gap has no object", event.Gap, []Include{Before, After, Patch}, "changes"},
	} {
		o := Options{Include: tc.include}
		e := sample(tc.op)
		m, err := o.message(Item{Seq: 1, Event: func() *event.Event { return e }}, o.MaxBytes)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		var doc struct{ Data map[string]json.RawMessage }
		if err := json.Unmarshal(m.Body, &doc); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		var got []string
		for _, part := range []string{"after", "before", "changes", "patch"} {
			if _, ok := doc.Data[part]; ok {
				got = append(got, part)
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: data has %s, want %s", tc.why, s, tc.want)
		}
		if d := cmp.Diff(sample(tc.op), e); d != "" {
			t.Errorf("%s: the store's event was written to:\n%s", tc.why, d)
		}
	}
}

func TestTruncate(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	change := func(path string, n int) event.Change {
		return event.Change{Path: path, Op: "add", To: long(n), Manager: "m"}
	}
	for _, tc := range []struct {
		why      string
		change   func(*event.Data)
		want     string // paths of the changes
		managers bool
		whole    bool // not truncated
	}{
		{"a fitting event is complete", func(*event.Data) {}, "data.a", true, true},
		{"objects go first", func(d *event.Data) { d.After = map[string]any{"a": long(5000)} }, "data.a", true, false},
		{"a long change goes, those around it stay", func(d *event.Data) {
			d.Changes = []event.Change{change("a", 10), change("b", 5000), change("c", 10)}
		}, "a c", false, false},
		{"as many as fit", func(d *event.Data) {
			d.Changes = []event.Change{change("a", 1500), change("b", 1500), change("c", 1500)}
		}, "a b", false, false},
		{"managers are less important", func(d *event.Data) {
			for range 100 {
				d.Managers = append(d.Managers, event.Manager{Manager: long(100)})
			}
		}, "data.a", false, false},
		{"the object's names stay, however long", func(d *event.Data) { d.Resource.Name = long(9000) }, "", false, false},
	} {
		o := Options{Include: []Include{After, Patch}, MaxBytes: MinMaxBytes}
		e := sample(event.Updated)
		tc.change(&e.Data)
		m, err := o.message(Item{Event: func() *event.Event { return e }}, o.MaxBytes)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		var got event.Event
		if err := json.Unmarshal(m.Body, &got); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		var paths []string
		for _, c := range got.Data.Changes {
			paths = append(paths, c.Path)
		}
		if s := strings.Join(paths, " "); s != tc.want {
			t.Errorf("%s: changes of %q, want %q", tc.why, s, tc.want)
		}
		d := got.Data
		if (len(d.Managers) > 0) != tc.managers || d.Truncated == tc.whole || (d.After != nil) != tc.whole || (d.Patch != nil) != tc.whole {
			t.Errorf("%s: managers %v, truncated %v, after %v, patch %v", tc.why, d.Managers, d.Truncated, d.After != nil, d.Patch)
		}
		if len(m.Body) > MinMaxBytes && len(e.Data.Resource.Name) < 9000 {
			t.Errorf("%s: %d bytes", tc.why, len(m.Body))
		}
		if m.ID != e.ID || got.ID != e.ID {
			t.Errorf("%s: the id changed", tc.why)
		}
	}
}

// TestTruncateUsesTheRoom checks the arithmetic: one more byte admits one more change.
func TestTruncateUsesTheRoom(t *testing.T) {
	e := sample(event.Updated)
	e.Data.Managers = nil
	e.Data.Changes = append(e.Data.Changes, event.Change{Path: "b", Op: "add", To: strings.Repeat("y", MinMaxBytes), Manager: "m"})
	e.Data.Truncated = true
	body, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	e.Data.Truncated = false
	e.Data.Before, e.Data.After = nil, nil
	whole := len(body) - len(`"before":{"data":{"a":"1"}},"after":{"data":{"a":"2"}},`)
	for limit, want := range map[int]int{whole + 1: 2, whole - 1: 1} {
		cut := *e
		cut.Data.Managers = []event.Manager{{Manager: strings.Repeat("z", 100)}} // is removed first
		got, err := truncate(&cut, limit)
		if err != nil || len(cut.Data.Changes) != want || len(got) > limit {
			t.Errorf("limit %d: %d changes in %d bytes, %v; want %d", limit, len(cut.Data.Changes), len(got), err, want)
		}
	}
}

func TestMessageKey(t *testing.T) {
	o := Options{}
	e := sample(event.Gap)
	e.PartitionKey = ""
	m, err := o.message(Item{Event: func() *event.Event { return e }}, o.MaxBytes)
	if err != nil || m.Key != e.Subject {
		t.Errorf("a gap's key is %q, %v; want its collection", m.Key, err)
	}
	m, err = o.message(Item{Event: func() *event.Event { return sample(event.Updated) }}, o.MaxBytes)
	if err != nil || m.Key != "u" {
		t.Errorf("an object's key is %q, %v; want its UID", m.Key, err)
	}
	bad := sample(event.Created)
	bad.Data.After = map[string]any{"x": math.NaN()}
	if _, err := o.message(Item{Event: func() *event.Event { return bad }}, 0); err == nil {
		t.Error("a value that JSON cannot express became a message")
	}
}

// TestSharedJSON: JSON encoded once is sent if nothing is removed from the event, added to it, or marked.
func TestSharedJSON(t *testing.T) {
	for _, tc := range []struct {
		why    string
		o      Options
		op     event.Op
		marked bool
		shared bool
	}{
		{"a creation", Options{}, event.Created, false, true},
		{"an update without objects, which this one has", Options{}, event.Updated, false, false},
		{"all that it has", Options{Include: []Include{Before, After}}, event.Updated, false, true},
		{"a part that it has anyway", Options{Include: []Include{After}}, event.Updated, false, false},
		{"and a patch", Options{Include: []Include{Before, After, Patch}}, event.Updated, false, false},
		{"a mark of the filter", Options{}, event.Created, true, false},
	} {
		e := sample(tc.op)
		if tc.op == event.Created {
			e.Data.Before = nil
		}
		item := Item{Seq: 1, Event: func() *event.Event { return e }, JSON: func() ([]byte, error) { return []byte("shared"), nil }}
		if tc.marked {
			item = item.marked("it failed")
		}
		m, err := tc.o.message(item, 0)
		if err != nil || (string(m.Body) == "shared") != tc.shared {
			t.Errorf("%s: %.100s, %v", tc.why, m.Body, err)
		}
	}
}
