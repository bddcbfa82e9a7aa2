package config

import (
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/meta"
	"github.com/tattler-dev/tattler/internal/where"
)

// TestExpressions evaluates the examples of docs/config.md on a change that each selects, and on one that it does not.
func TestExpressions(t *testing.T) {
	web := change.Meta{Kind: change.Kind{Group: "apps", Resource: "deployments", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	node := change.Meta{Kind: change.Kind{Resource: "nodes", Kind: "Node"}, Name: "n"}
	is := func(op event.Op, m change.Meta) *change.Change {
		m.Op = op
		return &change.Change{Meta: m}
	}
	updated := func(path string, from, to any, manager string) *change.Change {
		p, err := diff.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		c := is(event.Updated, web)
		c.Fields = []change.FieldChange{{Change: diff.Change{Path: p, Op: diff.Replace, From: from, To: to}, Manager: manager}}
		return c
	}
	spec := func(op event.Op, spec map[string]any) *change.Change {
		c := is(op, web)
		c.After = map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "shop"}}, "spec": spec}
		return c
	}
	status := updated("status.replicas", int64(1), int64(2), "kube-controller-manager")
	cordoned := updated("spec.unschedulable", false, true, "kubectl-cordon")
	cordoned.Kind, cordoned.Namespace, cordoned.Name = node.Kind, "", node.Name
	nodeStatus := is(event.Updated, node)
	nodeStatus.Fields = status.Fields
	unlabelled := is(event.Created, web)
	unlabelled.After = map[string]any{"metadata": map[string]any{"name": "web"}}
	role := change.Meta{Kind: change.Kind{Group: "rbac.authorization.k8s.io", Resource: "roles", Kind: "Role"}, Namespace: "shop", Name: "r"}
	job := change.Meta{Kind: change.Kind{Resource: "pods", Kind: "Pod"}, Namespace: "shop", Name: "p", Owner: &event.Owner{Kind: "Job"}}
	samples := []struct{ yes, no *change.Change }{
		{is(event.Deleted, web), is(event.Deleted, node)},
		{updated("spec.replicas", int64(1), int64(2), "x"), status},
		{updated("spec.template.spec.containers[name=app].image", "a:1", "a:2", "x"), updated("spec.replicas", int64(1), int64(2), "x")},
		{cordoned, nodeStatus},
		{cordoned, status},
		{cordoned, updated("spec.replicas", int64(1), int64(2), "argocd-controller")},
		{spec(event.Updated, map[string]any{"replicas": int64(0)}), spec(event.Updated, map[string]any{"replicas": int64(3)})},
		{updated("spec.replicas", int64(3), int64(2), "x"), updated("spec.replicas", int64(2), int64(3), "x")},
		{is(event.Created, role), is(event.Snapshot, role)},
		{is(event.Absent, change.Meta{Kind: meta.AbsenceKind}), status},
		{status, is(event.Created, job)},
		{spec(event.Created, nil), unlabelled},
	}
	if len(samples) != len(expressions) {
		t.Fatalf("%d samples for %d expressions", len(samples), len(expressions))
	}
	for i, e := range expressions {
		expr, err := where.Compile(e.cel)
		if err != nil {
			t.Errorf("%s: %v", e.cel, err)
			continue
		}
		for _, tc := range []struct {
			data *change.Change
			want bool
		}{{samples[i].yes, true}, {samples[i].no, false}} {
			if got, err := expr.Match(tc.data); got != tc.want || err != nil {
				t.Errorf("%s: %t, %v on %+v", e.cel, got, err, tc.data)
			}
		}
	}
}
