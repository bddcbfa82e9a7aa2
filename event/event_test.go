package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	seen   = time.Date(2026, 11, 21, 11, 0, 1, 0, time.FixedZone("CET", 3600)) // no fraction, not UTC
	before = time.Date(2026, 11, 21, 9, 59, 59, 987654321, time.UTC)
)

// full is the sample of the design: an event with every field set.
func full() Event {
	return New("prod", time.Date(2026, 11, 21, 10, 0, 0, 123000000, time.UTC), Data{
		Op: Updated,
		Resource: Resource{
			Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web",
			UID: "8f0e4b1c-5d1f-4b55-9f43-0c8d2a6f1e77", ResourceVersion: "1234",
			Owner: &Owner{Kind: "Shop", Name: "main", UID: "0a8a1c58-1111-4f1e-8f1e-5d1f4b559f43"},
		},
		Changes: []Change{
			{Path: "spec.template.spec.containers[name=app].image", Op: "replace", From: "app:1.4", To: "app:1.5", Manager: "kubectl-set"},
			{Path: "spec.template.spec.containers[name=app].env", Op: "reorder", From: []any{named("HOST"), named("URL")}, To: []any{named("URL"), named("HOST")}, Manager: "?"},
			{Path: "status.conditions", Op: "replace", From: []any{}, To: []any{"x"}, Manager: "?", Whole: true},
			{Path: "status.replicas", Op: "add", To: int64(3), Manager: "kube-controller-manager", Subresource: "status", Quiet: true},
		},
		Patch:    []Operation{{Op: "test", Path: "/metadata/resourceVersion", Value: "1230"}, {Op: "replace", Path: "/spec/template/spec/containers/0/image", Value: "app:1.5"}},
		Managers: []Manager{{Manager: "kubectl-set", Operation: "Update", Time: "2026-11-21T10:00:00Z"}},
		Severity: Failure,
		Before:   map[string]any{"kind": "Deployment"},
		After:    map[string]any{"kind": "Deployment", "note": "a < b & c"},
		Observed: Observed{After: &before, At: seen, Net: true},
		Gap:      &GapInfo{From: "1200", To: "1234", Reason: "the server has no history before 1234"},
		Absence:  &Absence{Reason: AbsenceStopped, Changes: 3, Incomplete: 1},
		Epoch:    2,
		Quiet:    true, Unkeyed: true, Truncated: true, FilterError: "no such key: spec",
	})
}

func named(name string) map[string]any { return map[string]any{"name": name} }

func TestFullEventGolden(t *testing.T) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(full()); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(line.Bytes(), []byte("\n")); n != 1 {
		t.Errorf("an event is %d lines, want 1", n)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, line.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/full.json", pretty.Bytes())

	var back Event
	if err := json.Unmarshal(line.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	want := full()
	want.Data.Changes[3].To = 3.0 // encoding/json's number
	cut := before.Truncate(time.Millisecond)
	want.Data.Observed.After = &cut
	if d := cmp.Diff(want, back); d != "" {
		t.Errorf("an event read back differs (-want +got):\n%s", d)
	}
}

// TestFullEventMatchesSchema keeps the written form and the schema together: a field that one of
// them lacks is an error.
func TestFullEventMatchesSchema(t *testing.T) {
	var schema, doc map[string]any
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &doc); err != nil {
		t.Fatal(err)
	}
	defs := schema["$defs"].(map[string]any)
	unseen := map[string]bool{}
	for name, def := range defs {
		for p := range def.(map[string]any)["properties"].(map[string]any) {
			unseen[name+"."+p] = true
		}
	}
	check(t, "event", "Event", schema, doc, defs, unseen)
	if len(unseen) != 0 {
		t.Errorf("the full event lacks %v", unseen)
	}

	delete(doc, "id")
	doc["unheard"] = "of"
	probe := &recorder{}
	check(probe, "event", "Event", schema, doc, defs, unseen)
	if len(probe.errs) != 2 {
		t.Errorf("an event without id and with a stray field: %d errors, want 2: %v", len(probe.errs), probe.errs)
	}
}

type reporter interface{ Errorf(string, ...any) }

type recorder struct{ errs []string }

func (r *recorder) Errorf(f string, args ...any) { r.errs = append(r.errs, fmt.Sprintf(f, args...)) }

// check is as much of JSON Schema as schema.json uses.
func check(t reporter, at, def string, schema map[string]any, v any, defs map[string]any, unseen map[string]bool) {
	if ref, ok := schema["$ref"].(string); ok {
		def = ref[len("#/$defs/"):]
		schema = defs[def].(map[string]any)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		t.Errorf("%s: %v is not in %v", at, v, enum)
	}
	switch schema["type"] {
	case "string":
		if _, ok := v.(string); !ok {
			t.Errorf("%s: %v is no string", at, v)
		}
	case "integer":
		if n, ok := v.(float64); !ok || n != math.Trunc(n) {
			t.Errorf("%s: %v is no integer", at, v)
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			t.Errorf("%s: %v is no boolean", at, v)
		}
	case "array":
		for i, e := range v.([]any) {
			check(t, fmt.Sprintf("%s[%d]", at, i), def, schema["items"].(map[string]any), e, defs, unseen)
		}
	case "object":
		properties, ok := schema["properties"].(map[string]any)
		if !ok {
			return // a Kubernetes object
		}
		object := v.(map[string]any)
		for _, name := range schema["required"].([]any) {
			if _, ok := object[name.(string)]; !ok {
				t.Errorf("%s lacks %s", at, name)
			}
		}
		for name, value := range object {
			p, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("%s.%s is not in the schema", at, name)
				continue
			}
			delete(unseen, def+"."+name)
			check(t, at+"."+name, def, p, value, defs, unseen)
		}
	}
}

func TestChangeJSON(t *testing.T) {
	for _, tc := range []struct {
		why  string
		c    Change
		want string
	}{
		{"an add has no from", Change{Op: "add", To: "b"}, `{"path":"p","op":"add","to":"b","manager":"m"}`},
		{"an added null is there", Change{Op: "add"}, `{"path":"p","op":"add","to":null,"manager":"m"}`},
		{"a remove has no to", Change{Op: "remove", From: "a"}, `{"path":"p","op":"remove","from":"a","manager":"m"}`},
		{"a removed null is there", Change{Op: "remove"}, `{"path":"p","op":"remove","from":null,"manager":"m"}`},
		{"a replaced null is there", Change{Op: "replace", To: "b"}, `{"path":"p","op":"replace","from":null,"to":"b","manager":"m"}`},
		{"to null", Change{Op: "replace", From: "a"}, `{"path":"p","op":"replace","from":"a","to":null,"manager":"m"}`},
		{"zero values are values", Change{Op: "replace", From: int64(0), To: false}, `{"path":"p","op":"replace","from":0,"to":false,"manager":"m"}`},
		{"so is the empty string", Change{Op: "replace", From: "", To: "x"}, `{"path":"p","op":"replace","from":"","to":"x","manager":"m"}`},
		{"large integers stay exact", Change{Op: "add", To: int64(9007199254740993)}, `{"path":"p","op":"add","to":9007199254740993,"manager":"m"}`},
	} {
		tc.c.Path, tc.c.Manager = "p", "m"
		got, err := json.Marshal(tc.c)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", tc.why, got, err, tc.want)
		}
	}
}

func TestOperationJSON(t *testing.T) {
	for _, tc := range []struct {
		why  string
		o    Operation
		want string
	}{
		{"a remove has no value", Operation{Op: "remove", Path: "/a"}, `{"op":"remove","path":"/a"}`},
		{"an added null is there", Operation{Op: "add", Path: "/a"}, `{"op":"add","path":"/a","value":null}`},
		{"zero values are values", Operation{Op: "replace", Path: "/a", Value: int64(0)}, `{"op":"replace","path":"/a","value":0}`},
		{"nothing is escaped for HTML", Operation{Op: "add", Path: "/a", Value: "<&>"}, `{"op":"add","path":"/a","value":"<&>"}`},
	} {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(tc.o); err != nil || line.String() != tc.want+"\n" {
			t.Errorf("%s:\n got %s, %v\nwant %s", tc.why, &line, err, tc.want)
		}
	}
}

func TestSubject(t *testing.T) {
	for _, tc := range []struct {
		why  string
		r    Resource
		want string
	}{
		{"the sample of the design", Resource{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}, "/apis/apps/v1/namespaces/shop/deployments/web"},
		{"the core group has a root of its own", Resource{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "web"}, "/api/v1/namespaces/shop/configmaps/web"},
		{"cluster-scoped", Resource{Version: "v1", Resource: "nodes", Name: "n1"}, "/api/v1/nodes/n1"},
		{"a namespace is cluster-scoped", Resource{Version: "v1", Resource: "namespaces", Name: "shop"}, "/api/v1/namespaces/shop"},
		{"RBAC names hold colons", Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: "system:node"}, "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"},
		{"a gap is in a collection", Resource{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop"}, "/apis/apps/v1/namespaces/shop/deployments"},
	} {
		if got := Subject(tc.r); got != tc.want {
			t.Errorf("%s: Subject = %s, want %s", tc.why, got, tc.want)
		}
	}
}

func TestIDs(t *testing.T) {
	form := regexp.MustCompile(`^[a-z2-7]{26}$`)
	const pinned = "pm2ulsccccntccc23shpk3qzga" // consumers remember ids: a new value is a new contract
	if got := ID("prod", "deployments.apps", "u1", "1234", Updated, 1, 0); got != pinned {
		t.Errorf("ID = %s, want %s for ever", got, pinned)
	}
	if got := ID("prod", "deployments.apps", "u1", "1234", Updated, 0, 0); got != pinned {
		t.Errorf("without an epoch it is %s, not that of the first", got)
	}
	for _, op := range []Op{Snapshot, Created, Entered} {
		if got := ID("prod", "deployments.apps", "u1", "1234", op, 1, 0); got != pinned {
			t.Errorf("the id of the same version as %s is %s", op, got)
		}
	}
	ids := map[string]string{}
	for why, id := range map[string]string{
		"base":                           ID("prod", "pods", "u", "1", Updated, 1, 0),
		"another cluster":                ID("test", "pods", "u", "1", Updated, 1, 0),
		"another resource":               ID("prod", "jobs", "u", "1", Updated, 1, 0),
		"another object":                 ID("prod", "pods", "v", "1", Updated, 1, 0),
		"another version":                ID("prod", "pods", "u", "2", Updated, 1, 0),
		"it left":                        ID("prod", "pods", "u", "1", Left, 1, 0),
		"it was deleted":                 ID("prod", "pods", "u", "", Deleted, 1, 0),
		"it is back":                     ID("prod", "pods", "u", "1", Updated, 1, 1),
		"a letter moved over a boundary": ID("prodp", "ods", "u", "1", Updated, 1, 0),
		"another history":                ID("prod", "pods", "u", "1", Updated, 2, 0),
		"yet another history":            ID("prod", "pods", "u", "1", Updated, 3, 0),
		"a conversion":                   ID("prod", "pods", "u", "1", Converted, 1, 7),
		"to another form":                ID("prod", "pods", "u", "1", Converted, 1, 8),
		"of another version":             ID("prod", "pods", "u", "2", Converted, 1, 7),
		"in another history":             ID("prod", "pods", "u", "1", Converted, 2, 7),
		"a gap in another history":       GapID("prod", "pods/", "1", "2", 2),
		"a gap":                          GapID("prod", "pods/", "1", "2", 1),
		"a gap elsewhere":                GapID("prod", "pods/shop", "1", "2", 1),
		"a gap from elsewhere":           GapID("prod", "pods/", "", "12", 1),
		"a gap that reads like a change": GapID("prod", "pods", "u", "1", 1),
	} {
		if !form.MatchString(id) {
			t.Errorf("%s: %q is not 26 letters", why, id)
		}
		if other, ok := ids[id]; ok {
			t.Errorf("%s and %s have the same id", why, other)
		}
		ids[id] = why
	}
}

func TestNew(t *testing.T) {
	pod := Resource{Version: "v1", Resource: "pods", Namespace: "shop", Name: "web", ResourceVersion: "7"}
	e := New("user@eks/prod eu", seen, Data{Op: Created, Resource: pod})
	if want := "/clusters/user@eks%2Fprod%20eu"; e.Source != want {
		t.Errorf("Source = %s, want %s: context names hold anything", e.Source, want)
	}
	if want := "dev.tattler.change.created.v1"; e.Type != want {
		t.Errorf("Type = %s, want %s", e.Type, want)
	}
	other := pod
	other.Name = "db"
	if New("c", seen, Data{Op: Created, Resource: other}).ID == New("c", seen, Data{Op: Created, Resource: pod}).ID {
		t.Error("objects without a UID (client-go's fakes) share an id")
	}
	if got, want := New("c", seen, Data{Op: Created, Resource: pod}).ID, New("c", before, Data{Op: Created, Resource: pod, Quiet: true}).ID; got != want {
		t.Error("the id depends on more than what happened")
	}
	pod.UID = "u"
	missed := pod
	missed.ResourceVersion = "5"
	if New("c", seen, Data{Op: Deleted, Resource: pod}).ID != New("c", seen, Data{Op: Deleted, Resource: missed}).ID {
		t.Error("a deletion that was missed has another id")
	}
	if missed.UID = ""; New("c", seen, Data{Op: Deleted, Resource: missed}).ID == New("c", seen, Data{Op: Deleted, Resource: Resource{Version: "v1", Resource: "pods", Namespace: "shop", Name: "web", ResourceVersion: "7"}}).ID {
		t.Error("two deletions of objects without a UID share an id")
	}
	first := New("c", seen, Data{Op: Created, Resource: pod, Epoch: 1})
	if first.ID != New("c", seen, Data{Op: Created, Resource: pod}).ID || first.Data.Epoch != 0 {
		t.Error("the first epoch shows")
	}
	if second := New("c", seen, Data{Op: Created, Resource: pod, Epoch: 2}); second.ID == first.ID || second.Data.Epoch != 2 {
		t.Error("the same version in another history has the same id")
	}
	gap := Data{Op: Gap, Resource: Resource{Version: "v1", Resource: "pods"}, Gap: &GapInfo{From: "1", To: "2"}}
	if got, want := New("c", seen, gap).ID, GapID("c", "pods/", "1", "2", 1); got != want {
		t.Errorf("a gap's id is %s, want %s", got, want)
	}
	gap.Observed = Observed{After: &before, At: seen}
	if got, want := New("c", seen, gap).ID, GapID("c", "pods/", "1", "2", 1); got != want {
		t.Errorf("the id of a gap between two versions is %s, want %s, whenever it was seen", got, want)
	}
	gap.Gap = &GapInfo{From: "1"}
	if got, want := New("c", seen, gap).ID, GapID("c", "pods/", "1", "2026-11-21T09:59:59.987Z", 1); got != want {
		t.Errorf("the id of a gap without an end is %s, want %s: another one may begin with that version", got, want)
	}
}
