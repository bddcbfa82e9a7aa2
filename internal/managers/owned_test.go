package managers

import (
	stdjson "encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/diff"
)

// TestOwned: what an entry of a real object owns, with present values. Owner agrees, unless there are several owners.
func TestOwned(t *testing.T) {
	for _, tc := range []struct{ why, object, manager, want string }{
		{"kubectl set image: one field of a list element", "deployment", "kubectl-set", "spec.template.spec.containers[name=app].image=web:1.5"},
		{"kubectl scale", "deployment", "kubectl", "spec.replicas=3"},
		{"kubectl label", "deployment", "kubectl-label", "metadata.labels.tier=front"},
		{"by keys of which one is a number", "widget", "tester", "spec.steps"},
		{"kubectl edit", "edited", "kubectl-edit", "spec.replicas=4"},
	} {
		for _, obj := range []map[string]any{load(t, tc.object), asText(t, load(t, tc.object))} {
			es := Parse(obj)
			var got []string
			for i, m := range es.List() {
				fields, more := es.Owned(i, 100)
				if more != 0 {
					t.Errorf("%s: %d more", tc.why, more)
				}
				for _, f := range fields {
					owner, _ := es.Owner(f.Path, f.To)
					if owner != m.Manager && owner != Unknown {
						t.Errorf("%s: %s is of %s, by Owner %s", tc.why, f.Path, m.Manager, owner)
					}
					if m.Manager == tc.manager {
						got = append(got, fmt.Sprintf("%s=%v", f.Path, f.To))
					}
				}
			}
			if !strings.Contains(strings.Join(got, "\n"), tc.want) {
				t.Errorf("%s: %s owns\n%s\nwant %s", tc.why, tc.manager, strings.Join(got, "\n"), tc.want)
			}
		}
	}
}

// TestOwnedSynthetic has cases that are hard to produce on a server.
func TestOwnedSynthetic(t *testing.T) {
	spec := map[string]any{
		"a": "x", "gone": nil, "s": []any{"red", "green"}, "m": map[string]any{"k": "v"}, "e": map[string]any{},
		"p": []any{map[string]any{"port": int64(80), "name": "http"}},
	}
	for _, tc := range []struct{ why, fields, want string }{
		{"a field that is gone", `{"f:spec":{"f:a":{},"f:gone":{},"f:other":{}}}`, "spec.a=x"},
		{"an element of a set", `{"f:spec":{"f:s":{"v:\"green\"":{},"v:\"blue\"":{}}}}`, "spec.s[=green]=green"},
		{"a key that the object lacks, as it has a default", `{"f:spec":{"f:p":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`, "spec.p[port=80,protocol=TCP].name=http"},
		{"another element", `{"f:spec":{"f:p":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}`, ""},
		{"an atomic map", `{"f:spec":{"f:m":{}}}`, "spec.m=map[k:v]"},
		{"an empty map", `{"f:spec":{"f:e":{}}}`, "spec.e=map[]"},
		{"no tree", `7`, ""},
	} {
		obj := map[string]any{"spec": spec, "metadata": map[string]any{"managedFields": []any{map[string]any{"manager": "m", "fieldsV1": rawFields(tc.fields)}}}}
		fields, _ := Parse(obj).Owned(0, 10)
		if got := ownedText(fields); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
		}
	}
	two := map[string]any{"spec": spec, "metadata": map[string]any{"managedFields": []any{
		map[string]any{"manager": "m", "fieldsV1": rawFields(`{"f:spec":{}}`)},
		map[string]any{"manager": "n", "fieldsV1": rawFields(`{"f:spec":{"f:a":{},"f:s":{},"f:m":{}}}`)},
	}}}
	es := Parse(two)
	if fields, _ := es.Owned(0, 10); len(fields) > 0 {
		t.Errorf("an entry that wrote a map when it was empty owns %s", ownedText(fields))
	}
	if fields, more := es.Owned(1, 2); len(fields) != 2 || more != 1 {
		t.Errorf("limited: %d fields, %d more", len(fields), more)
	}
	for _, i := range []int{-1, 2} {
		if fields, _ := es.Owned(i, 10); fields != nil {
			t.Errorf("entry %d owns %s", i, ownedText(fields))
		}
	}
	if fields, _ := (Entries{}).Owned(0, 10); fields != nil {
		t.Errorf("the zero value owns %s", ownedText(fields))
	}
}

func ownedText(fields []diff.Change) string {
	var all []string
	for _, f := range fields {
		all = append(all, fmt.Sprintf("%s=%v", f.Path, f.To))
	}
	return strings.Join(all, " ")
}

func rawFields(text string) stdjson.RawMessage { return stdjson.RawMessage(text) }
