package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/internal/capture"
)

func TestNeeded(t *testing.T) {
	read := []string{"get", "list", "watch"}
	pods := Right{Resource: "pods", Verbs: read}
	for _, tc := range []struct {
		why       string
		all, want []Right
	}{
		{"the same twice is once", []Right{pods, pods}, []Right{pods}},
		{"the cluster covers a namespace and a name", []Right{{Resource: "pods", Namespace: "a", Verbs: read}, {Resource: "pods", Name: "b", Verbs: read}, pods}, []Right{pods}},
		{"fewer verbs do not", []Right{{Resource: "pods", Verbs: []string{"list"}}, {Resource: "pods", Namespace: "a", Verbs: read}},
			[]Right{{Resource: "pods", Verbs: []string{"list"}}, {Resource: "pods", Namespace: "a", Verbs: read}}},
		{"all resources of a group cover one of it", []Right{{Group: "x.io", Resource: "*", Verbs: read}, {Group: "x.io", Resource: "as", Verbs: read}, pods},
			[]Right{{Group: "x.io", Resource: "*", Verbs: read}, pods}},
		{"a name is another name's", []Right{{Resource: "pods", Name: "a", Verbs: read}, {Resource: "pods", Name: "b", Verbs: read}},
			[]Right{{Resource: "pods", Name: "a", Verbs: read}, {Resource: "pods", Name: "b", Verbs: read}}},
	} {
		if diff := cmp.Diff(tc.want, Needed(tc.all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
	}
}

func TestOf(t *testing.T) {
	planned := func(resource string, streams ...capture.Selected) capture.Planned {
		return capture.Planned{Resource: capture.Resource{Resource: resource}, Streams: streams}
	}
	where := func(namespaces ...string) (out []capture.Selected) {
		for _, ns := range namespaces {
			out = append(out, capture.Selected{Namespace: ns})
		}
		return out
	}
	p := &capture.Plan{Kinds: []capture.Planned{
		planned("pods", where("pay", "shop")...), planned("secrets", capture.Selected{Name: "s"}), planned("nodes", where("")...),
	}, Globs: []capture.Glob{{Pattern: "*"}}}
	want := []Right{
		{Resource: "pods", Namespace: "pay", Verbs: Watching}, {Resource: "pods", Namespace: "shop", Verbs: Watching},
		{Resource: "secrets", Name: "s", Verbs: Watching}, {Resource: "nodes", Verbs: Watching},
		{Group: crdGroup, Resource: crdResource, Verbs: []string{"list", "watch"}},
		{Resource: "namespaces", Name: "kube-system", Verbs: []string{"get"}},
		{Resource: "namespaces", Name: "pay", Verbs: []string{"get"}}, {Resource: "namespaces", Name: "shop", Verbs: []string{"get"}},
	}
	if diff := cmp.Diff(want, Of(p), cmpopts.IgnoreFields(Right{}, "Without")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Globs, p.Kinds = nil, append(p.Kinds, planned("namespaces", where("")...))
	for _, r := range Of(p) {
		if r.Resource == crdResource || r.Resource == "namespaces" && r.Name != "" {
			t.Errorf("not needed: %+v", r)
		}
		if (r.Without != "") != (r.Resource == "namespaces" && r.Name != "") {
			t.Errorf("%+v", r)
		}
	}
}
