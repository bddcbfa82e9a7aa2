package managers

import (
	stdjson "encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// load reads the response of a 1.36 API server after the writes that the cases name.
func load(t *testing.T, name string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var obj map[string]any
	if err := json.Unmarshal(b, &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// asText returns the object as from jsonmap.DecodeObject, with fields still as text.
func asText(t *testing.T, obj map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := jsonmap.DecodeObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func path(t *testing.T, text string) diff.Path {
	t.Helper()
	p, err := diff.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOwner(t *testing.T) {
	const app = "spec.template.spec.containers[name=app]"
	for _, tc := range []struct {
		why, object, path string
		value             string // YAML; empty: the object's own value, or "x"
		want              string
	}{
		{"kubectl scale, which leaves a subresource", "deployment", "spec.replicas", "3", "kubectl (scale)"},
		{"kubectl set image", "deployment", app + ".image", "web:1.5", "kubectl-set"},
		{"kubectl apply, of the same container", "deployment", app + ".imagePullPolicy", "IfNotPresent", "kubectl-client-side-apply"},
		{"an atomic list", "deployment", app + ".args", "[--a, --b]", "kubectl-client-side-apply"},
		{"within an atomic list", "deployment", app + ".args[1]", "--b", "kubectl-client-side-apply"},
		{"kubectl label", "deployment", "metadata.labels.tier", "front", "kubectl-label"},
		{"a label with dots", "deployment", `metadata.labels["app.kubernetes.io/name"]`, "web", "kubectl-client-side-apply"},
		{"kubectl annotate, though apply owns the map as such", "deployment", `metadata.annotations["example.com/note"]`, "x", "kubectl-annotate"},
		{"the controller's status", "deployment", "status.readyReplicas", "2", "kube-controller-manager"},
		{"one manager by apply and by update", "deployment", "status", "{observedGeneration: 3, readyReplicas: 2}", "kube-controller-manager"},
		{"a condition", "deployment", "status.conditions[type=Available].reason", "MinimumReplicasAvailable", "kube-controller-manager"},
		{"a set, by server-side apply", "deployment", "metadata.finalizers[=example.com/hold]", "example.com/hold", "gitops"},
		{"the set as a whole", "deployment", "metadata.finalizers", "[example.com/hold]", "gitops"},
		{"an atomic list by a name that the server does not know", "deployment", "spec.template.spec.tolerations[key=spot].operator", "Exists", "gitops"},
		{"an object within one that another owns when empty", "deployment", app + ".resources.limits", "{cpu: '1'}", "gitops"},
		{"two managers own one field", "deployment", app + ".ports[containerPort=80,protocol=TCP].containerPort", "80", "?"},
		{"but not its neighbour", "deployment", app + ".ports[containerPort=80,protocol=TCP].name", "http", "kubectl-client-side-apply"},
		{"the same by another key, as without a schema", "deployment", app + ".ports[name=http].name", "http", "kubectl-client-side-apply"},
		{"the same by index", "deployment", app + ".ports[0].name", "http", "kubectl-client-side-apply"},
		{"a whole container of three managers", "deployment", app, "{name: app, image: 'web:1.5', args: [--a, --b]}", "?"},
		{"a whole element of one manager", "deployment", app + ".env[name=LOG]", "{name: LOG}", "kubectl-client-side-apply"},
		{"a part without an owner", "deployment", "spec.strategy", "{type: RollingUpdate, other: 1}", "?"},
		{"null does not count as a part", "deployment", "spec.strategy", "{type: RollingUpdate, other: null}", "kubectl-client-side-apply"},
		{"set by the server itself", "deployment", "metadata.generation", "7", "?"},
		{"no such element", "deployment", "spec.template.spec.containers[name=side].image", "x", "?"},

		{"kubectl edit", "edited", "spec.replicas", "4", "kubectl-edit"},
		{"kubectl edit, in a container", "edited", app + ".image", "web:9", "kubectl-edit"},
		{"a removed label: not its last owner, nor the newest entry", "edited", `metadata.labels["app.kubernetes.io/name"]`, "null", "?"},

		{"the kubelet", "pod", "status.phase", "Running", "kubelet"},
		{"in an atomic list, by name", "pod", "status.containerStatuses[name=app].ready", "true", "kubelet"},
		{"a null that it owns", "pod", "status.conditions[type=Ready].lastTransitionTime", "x", "kubelet"},
		{"the pod's creator", "pod", "spec.containers[name=app].image", "x", "kube-controller-manager"},
		{"an atomic element of a keyed list", "pod", "metadata.ownerReferences[uid=u-1].name", "c", "ctl"},
		{"the same by name", "pod", "metadata.ownerReferences[name=c]", "{kind: ConfigMap, name: c}", "ctl"},
		{"binding leaves no owner", "pod", "spec.nodeName", "n1", "?"},
		{"quality of service is computed", "pod", "status.qosClass", "BestEffort", "?"},

		{"a custom resource by two keys, of which one is a number", "widget", "spec.endpoints[host=a,port=443].tls", "true", "kubectl-client-side-apply"},
		{"by one of them", "widget", "spec.endpoints[host=a].tls", "true", "kubectl-client-side-apply"},
		{"a list without a type is atomic", "widget", "spec.steps[name=one].run", "pwd", "tester"},
		{"an element of a set", "widget", "spec.tags[=green]", "green", "tester"},
		{"another's", "widget", "spec.tags[=red]", "red", "kubectl-client-side-apply"},
		{"the set, of two", "widget", "spec.tags", "[blue, red, green]", "?"},
		{"below unknown fields", "widget", "spec.free.a", "[1, 2]", "kubectl-client-side-apply"},
	} {
		var value any
		if err := yaml.Unmarshal([]byte(tc.value), &value); err != nil {
			t.Fatal(err)
		}
		for _, obj := range []map[string]any{load(t, tc.object), asText(t, load(t, tc.object))} {
			if got := Display(Parse(obj).Owner(path(t, tc.path), value)); got != tc.want {
				t.Errorf("%s: %s %s: %s, want %s", tc.why, tc.object, tc.path, got, tc.want)
			}
		}
	}
}

func TestList(t *testing.T) {
	got := Parse(load(t, "edited")).List()
	want := []event.Manager{
		{Manager: "kubectl-client-side-apply", Operation: "Update", Time: got[0].Time},
		{Manager: "kubectl-edit", Operation: "Update", Time: got[1].Time},
	}
	if d := cmp.Diff(want, got); d != "" || got[0].Time == "" {
		t.Error(d)
	}
	scale := Parse(load(t, "deployment")).List()[2]
	if d := cmp.Diff(event.Manager{Manager: "kubectl", Operation: "Update", Subresource: "scale"}, scale); d != "" {
		t.Errorf("kubectl scale has no time:\n%s", d)
	}
}

// TestSynthetic has cases that are hard to produce on a server.
func TestSynthetic(t *testing.T) {
	for _, tc := range []struct {
		why, fields, path, want string
	}{
		{"no managed fields", "null", "spec.a", "?"},
		{"no list", "a: b", "spec.a", "?"},
		{"invalid entries", "[1, null, [], {}]", "spec.a", "?"},
		{"invalid fields", "[{manager: m, fieldsV1: 3}, {manager: m, fieldsV1: []}, {manager: m}]", "spec.a", "?"},
		{"an entry without any field owns nothing", "[{manager: m, fieldsV1: {}}]", "spec.a", "?"},
		{"a tree that breaks off", "[{manager: m, fieldsV1: {'f:spec': 7}}]", "spec.a", "?"},
		{"broken keys", "[{manager: m, fieldsV1: {'f:spec': {'f:l': {'k:{': {}, 'k:{}': {}, 'k:[]': {}, 'v:': {}, 'i:x': {}, 'i:-1': {}, 'z:1': {}, 'f': {}, '': {}, '.': 3}}}}]", "spec.l[name=x]", "?"},
		{"a nameless manager", "[{fieldsV1: {'f:spec': {'f:a': {}}}}]", "spec.a", "?"},
		{"by index", "[{manager: m, fieldsV1: {'f:spec': {'f:l': {'i:0': {}}}}}]", "spec.l[0]", "m"},
		{"by another index", "[{manager: m, fieldsV1: {'f:spec': {'f:l': {'i:1': {}}}}}]", "spec.l[0]", "?"},
		{"an index beyond the list", "[{manager: m, fieldsV1: {'f:spec': {'f:l': {'k:{\"name\":\"x\"}': {}}}}}]", "spec.l[9]", "?"},
		{"a key with a default, absent from the object", "[{manager: m, fieldsV1: {'f:spec': {'f:l': {'k:{\"name\":\"x\",\"protocol\":\"TCP\"}': {'f:v': {}}}}}}]", "spec.l[name=x,protocol=TCP].v", "m"},
		{"one manager, two subresources", "[{manager: m, subresource: scale, fieldsV1: {'f:spec': {'f:a': {}}}}, {manager: m, subresource: other, fieldsV1: {'f:spec': {'f:a': {}}}}]", "spec.a", "m"},
		{"one manager, one subresource, twice", "[{manager: m, subresource: scale, fieldsV1: {'f:spec': {'f:a': {}}}}, {manager: m, subresource: scale, fieldsV1: {'f:spec': {'f:a': {}}}}]", "spec.a", "m (scale)"},
		{"a field that is only passed through is not owned", "[{manager: m, fieldsV1: {'f:spec': {'f:a': {'f:b': {}}}}}]", "spec.a", "?"},
		{"two atomic owners", "[{manager: m, fieldsV1: {'f:spec': {}}}, {manager: n, fieldsV1: {'f:spec': {}}}]", "spec.a", "?"},
	} {
		obj := map[string]any{"metadata": map[string]any{}}
		var fields any
		if err := yaml.Unmarshal([]byte(tc.fields), &fields); err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		obj["metadata"].(map[string]any)["managedFields"] = fields
		obj["spec"] = map[string]any{"a": "x", "l": []any{map[string]any{"name": "x", "v": int64(1)}}}
		for _, obj := range []map[string]any{obj, asText(t, obj)} {
			if got := Display(Parse(obj).Owner(path(t, tc.path), "x")); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
			}
		}
	}
	for why, obj := range map[string]map[string]any{"nil": nil, "invalid metadata": {"metadata": 1}} {
		if m, _ := Parse(obj).Owner(path(t, "spec.a"), "x"); m != Unknown {
			t.Errorf("%s: %s", why, m)
		}
	}
	if m, _ := (Entries{}).Owner(path(t, "spec.a"), "x"); m != Unknown {
		t.Errorf("the zero value: %s", m)
	}
}

func TestDisplay(t *testing.T) {
	for _, tc := range [][3]string{{"kubectl", "", "kubectl"}, {"kubectl", "scale", "kubectl (scale)"}, {"kubelet", "status", "kubelet"}, {"?", "", "?"}} {
		if got := Display(tc[0], tc[1]); got != tc[2] {
			t.Errorf("Display(%s, %s) = %s", tc[0], tc[1], got)
		}
	}
}

// FuzzOwner: Owner returns an answer for any input.
func FuzzOwner(f *testing.F) {
	f.Add(`{"f:spec":{"f:l":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}}}}}`, "spec.l[name=x].v")
	f.Add(`{"f:spec":{"f:l":{"v:\"a\"":{},"i:3":{}}}}`, "spec.l[=a]")
	f.Fuzz(func(t *testing.T, fields, text string) {
		p, err := diff.ParsePath(text)
		if err != nil {
			return
		}
		var tree any
		if json.Unmarshal([]byte(fields), &tree) != nil {
			return
		}
		m, _ := Parse(map[string]any{
			"metadata": map[string]any{"managedFields": []any{map[string]any{"manager": "m", "fieldsV1": tree}}},
			"spec":     map[string]any{"l": []any{map[string]any{"name": "x", "v": []any{}}, "a"}},
		}).Owner(p, map[string]any{"a": []any{map[string]any{"name": "x"}}})
		if m != "m" && m != Unknown {
			t.Errorf("got %q", m)
		}
	})
}

// TestDeep: the owner of very deeply nested fields is unknown, and looking for it takes no time.
func TestDeep(t *testing.T) {
	for _, tc := range []struct {
		depth int
		want  string
	}{{maxTree - 1, "m"}, {maxTree + 1, Unknown}, {9000, Unknown}} {
		var value any = "x"
		var p diff.Path
		for range tc.depth {
			value = map[string]any{"a": value}
			p = append(p, diff.Elem{Kind: diff.Field, Name: "a"})
		}
		obj := value.(map[string]any)
		obj["metadata"] = map[string]any{"managedFields": []any{map[string]any{"manager": "m",
			"fieldsV1": stdjson.RawMessage(strings.Repeat(`{"f:a":`, tc.depth) + "{}" + strings.Repeat("}", tc.depth))}}}
		if got, _ := Parse(obj).Owner(p, "x"); got != tc.want {
			t.Errorf("%d deep: %s, want %s", tc.depth, got, tc.want)
		}
	}
}
