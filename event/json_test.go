package event

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestJSONFields: the JSON forms have the fields of the types that they stand for, under the same names.
func TestJSONFields(t *testing.T) {
	for _, pair := range [][2]any{{Event{}, eventJSON{}}, {Data{}, dataJSON{}}, {Observed{}, observedJSON{}}, {Change{}, changeJSON{}}, {Operation{}, operationJSON{}}} {
		fields := func(v any) (all []string) {
			for f := range reflect.TypeOf(v).Fields() {
				all = append(all, f.Name+" "+f.Tag.Get("json"))
			}
			return all
		}
		want, got := fields(pair[0]), fields(pair[1])
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%T (-type +JSON form):\n%s", pair[0], d)
		}
	}
}

// TestOnePass: an event is written as its parts are.
func TestOnePass(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.FixedZone("x", 3600))
	deep := map[string]any{"b": []any{int64(1), 1.5, "<&>\u2028", nil, map[string]any{}}, "a": nil}
	for _, d := range []Data{
		{Op: Updated, Observed: Observed{At: at}, Changes: []Change{
			{Path: "a", Op: "add", To: deep, Manager: "m"}, {Path: "b", Op: "remove", From: nil, Manager: "?", Quiet: true},
			{Path: "c", Op: "replace", From: nil, To: "x", Manager: "m", Subresource: "status", Whole: true},
		}, Before: deep, After: deep, Quiet: true, Epoch: 2, Truncated: true, FilterError: "<failed>",
			Patch:    []Operation{{Op: "remove", Path: "/a", Value: 1}, {Op: "add", Path: "/b"}},
			Managers: []Manager{{Manager: "m", Operation: "Apply"}}},
		{Op: Gap, Observed: Observed{After: &at, At: at, Net: true}, Gap: &GapInfo{From: "1", Reason: "expired"}},
		{Op: Created, Changes: []Change{}, Patch: []Operation{}, Before: map[string]any{}, Form: 7},
	} {
		e := New("a<b", at, d)
		got, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want, err := marshal(struct {
			SpecVersion     string `json:"specversion"`
			Type            string `json:"type"`
			Source          string `json:"source"`
			ID              string `json:"id"`
			Subject         string `json:"subject"`
			Time            string `json:"time"`
			PartitionKey    string `json:"partitionkey,omitempty"`
			DataContentType string `json:"datacontenttype"`
			Data            Data   `json:"data"`
		}{e.SpecVersion, e.Type, e.Source, e.ID, e.Subject, stamp(e.Time), e.PartitionKey, e.DataContentType, e.Data})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("(-parts +event):\n%s", diff)
		}
	}
}
