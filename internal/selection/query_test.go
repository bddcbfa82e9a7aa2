package selection

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/meta"
	"github.com/tattler-dev/tattler/internal/usage"
)

// TestHas has a case for each condition; the journal's TestQueries compares random ones.
func TestHas(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	pod := meta.Meta{
		Op: event.Updated, Kind: meta.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}, Namespace: "shop", Name: "web-1", UID: "u",
		Manager: "kubelet", Owner: &event.Owner{Kind: "ReplicaSet", Name: "web"}, Time: at, At: at,
	}
	with := func(f func(m *meta.Meta)) *meta.Meta {
		m := pod
		f(&m)
		return &m
	}
	node := with(func(m *meta.Meta) {
		m.Kind, m.Namespace, m.Name, m.Owner = meta.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}, "", "a", nil
	})
	gap := with(func(m *meta.Meta) { m.Op, m.Namespace, m.Name, m.UID, m.Owner = event.Gap, "", "", "", nil })
	nodes := with(func(m *meta.Meta) { *m = *node; m.Op, m.Name = event.Gap, "" })
	absent := with(func(m *meta.Meta) {
		*m = meta.Meta{Op: event.Absent, Kind: meta.AbsenceKind, Since: at.Add(-time.Hour), Time: at, At: at}
	})
	for _, tc := range []struct {
		why  string
		q    Query
		m    *meta.Meta
		want bool
	}{
		{"everything", Query{}, &pod, true},
		{"a quiet change", Query{}, with(func(m *meta.Meta) { m.Quiet = true }), false},
		{"one that is asked for", Query{Quiet: true}, with(func(m *meta.Meta) { m.Quiet = true }), true},
		{"a snapshot", Query{}, with(func(m *meta.Meta) { m.Op = event.Snapshot }), false},
		{"one by its operation", Query{Ops: []event.Op{event.Snapshot}}, with(func(m *meta.Meta) { m.Op = event.Snapshot }), true},
		{"another operation", Query{Ops: []event.Op{event.Deleted}}, &pod, false},
		{"at the beginning", Query{Since: at}, &pod, true},
		{"at the end", Query{Until: at}, &pod, false},
		{"perhaps before the end", Query{Until: at}, with(func(m *meta.Meta) { m.Since = at.Add(-time.Minute) }), true},
		{"its object says when", Query{Until: at}, with(func(m *meta.Meta) { m.Since, m.At = at.Add(-time.Minute), at.Add(time.Minute) }), false},
		{"a kind", Query{Resources: []string{"nodes", "pods"}}, &pod, true},
		{"another kind", Query{Resources: []string{"nodes"}}, &pod, false},
		{"the cluster of kinds that name none", Query{Clusters: []string{"prod"}}, &pod, true},
		{"another cluster", Query{Clusters: []string{"dev"}}, &pod, false},
		{"a glob", Query{Namespaces: []string{"s*"}}, &pod, true},
		{"an exclusion", Query{Namespaces: []string{"s*"}, Without: []string{"?hop"}}, &pod, false},
		{"no namespace, of all", Query{Without: []string{"*"}}, node, true},
		{"no namespace, of some", Query{Namespaces: []string{"*"}}, node, false},
		{"no namespace, by name", Query{Namespaces: []string{"shop", ""}}, node, true},
		{"a gap of a whole kind", Query{Namespaces: []string{"pay"}, Fields: []Field{{Value: "x"}}}, gap, true},
		{"a gap of a kind that has no namespaces", Query{Namespaces: []string{"pay"}}, nodes, false},
		{"a gap, by name", Query{Names: []string{"web-1"}}, gap, false},
		{"an absence", Query{Namespaces: []string{"pay"}, Resources: []string{"nodes"}}, absent, true},
		{"an absence, by name", Query{Names: []string{"web-1"}}, absent, false},
		{"a name", Query{Names: []string{"web-1"}}, &pod, true},
		{"a name of a kind", Query{Names: []string{"nodes/a", "pods/web-1"}}, &pod, true},
		{"a name of another kind", Query{Names: []string{"nodes/web-1"}}, &pod, false},
		{"another UID", Query{Names: []string{"web-1"}, UID: "v"}, &pod, false},
		{"an owner", Query{Resources: []string{"deployments.apps"}, Names: []string{"web"}, Owned: Owns()}, &pod, true},
		{"a kind that owns none", Query{Resources: []string{"nodes"}, Names: []string{"web"}, Owned: Owns()}, &pod, false},
		{"a field", Query{Fields: []Field{{Value: "web-1"}, {Namespace: true, Value: "shop"}}}, &pod, true},
		{"not this field", Query{Fields: []Field{{Not: true, Value: "web-1"}}}, &pod, false},
		{"a manager", Query{Managers: []string{"kube*"}}, &pod, true},
		{"an unknown manager is not a glob", Query{Managers: []string{"?"}}, with(func(m *meta.Meta) { m.Manager = "x" }), false},
	} {
		if got := tc.q.Has(tc.m, "prod"); got != tc.want {
			t.Errorf("%s: %v", tc.why, got)
		}
	}
}

// TestQueryValidate: a query of others can neither fail in a journal nor be without bounds.
func TestQueryValidate(t *testing.T) {
	for why, q := range map[string]Query{
		"a namespace": {Namespaces: []string{"a["}}, "an exclusion": {Without: []string{"a["}}, "a manager": {Managers: []string{"["}},
		"too much": {Names: []string{"a", "b"}, Fields: []Field{{}}, Resources: []string{"c"}}, "a limit": {Limit: -1}, "a number": {After: -1},
	} {
		if q.Validate(3) == nil {
			t.Errorf("%s passes", why)
		}
	}
	if err := (&Query{Names: []string{"a", "b"}, Managers: []string{"?"}}).Validate(3); err != nil {
		t.Error(err)
	}
}

func TestNamespaces(t *testing.T) {
	for text, n := range map[string]Namespaces{
		"all namespaces": {}, "namespace a": {Include: []string{"a"}}, "namespaces a*": {Include: []string{"a*"}},
		"namespaces a, b without c": {Include: []string{"a", "b"}, Exclude: []string{"c"}},
	} {
		if err := n.Validate(); n.String() != text || err != nil {
			t.Errorf("%s: %s, %v", text, n, err)
		}
	}
	for why, n := range map[string]Namespaces{
		"a broken glob":             {Include: []string{"a["}},
		"an empty name":             {Include: []string{""}},
		"a path":                    {Exclude: []string{"../a"}},
		"nothing is not everything": {Include: []string{"a"}, Exclude: []string{"a"}},
		"nor the rest after a glob": {Include: []string{"team-a", "team-b"}, Exclude: []string{"team-*"}},
	} {
		var wrong *usage.Error
		if err := n.Validate(); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := (Namespaces{Include: []string{"a", "b*"}, Exclude: []string{"a"}}).Validate(); err != nil {
		t.Errorf("a glob may leave something: %v", err)
	}
}

func TestWords(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []Word
		fail string
	}{
		{nil, nil, ""},
		{[]string{"po,cm"}, []Word{{"po", nil}, {"cm", nil}}, ""},
		{[]string{"po,cm", "a", "b"}, []Word{{"po", []string{"a", "b"}}, {"cm", []string{"a", "b"}}}, ""},
		{[]string{"po/a", "cm/b"}, []Word{{"po", []string{"a"}}, {"cm", []string{"b"}}}, ""},
		{[]string{"po,"}, nil, `"po," has an empty type`},
		{[]string{"po/a", "b"}, nil, `"b" is not TYPE/NAME; if one argument has this form, all must have it`},
		{[]string{"po/a/b"}, nil, `"po/a/b" is not TYPE/NAME`},
		{[]string{"/a"}, nil, `"/a" is not TYPE/NAME`},
	} {
		got, err := Words(tc.args)
		if tc.fail != "" {
			if err == nil || !strings.HasPrefix(err.Error(), tc.fail) {
				t.Errorf("%q: %v, want %s", tc.args, err, tc.fail)
			}
			continue
		}
		if d := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); err != nil || d != "" {
			t.Errorf("%q: %v (-want +got):\n%s", tc.args, err, d)
		}
	}
}
