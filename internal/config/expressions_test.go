package config

import (
	"testing"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/where"
)

// TestExpressions evaluates the examples of docs/config.md on a change that each selects, and on one that it does not.
func TestExpressions(t *testing.T) {
	web := event.Resource{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web"}
	node := event.Resource{Resource: "nodes", Kind: "Node", Name: "n"}
	updated := func(path string, from, to any, manager string) *event.Data {
		return &event.Data{Op: event.Updated, Resource: web, Changes: []event.Change{{Path: path, Op: "replace", From: from, To: to, Manager: manager}}}
	}
	spec := func(op event.Op, r event.Resource, spec map[string]any) *event.Data {
		return &event.Data{Op: op, Resource: r, After: map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "shop"}}, "spec": spec}}
	}
	status := updated("status.replicas", int64(1), int64(2), "kube-controller-manager")
	cordoned := updated("spec.unschedulable", false, true, "kubectl-cordon")
	cordoned.Resource = node
	role := event.Resource{Group: "rbac.authorization.k8s.io", Resource: "roles", Kind: "Role", Namespace: "shop", Name: "r"}
	job := event.Resource{Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "p", Owner: &event.Owner{Kind: "Job"}}
	samples := []struct{ yes, no *event.Data }{
		{&event.Data{Op: event.Deleted, Resource: web}, &event.Data{Op: event.Deleted, Resource: node}},
		{updated("spec.replicas", int64(1), int64(2), "x"), status},
		{updated("spec.template.spec.containers[name=app].image", "a:1", "a:2", "x"), updated("spec.replicas", int64(1), int64(2), "x")},
		{cordoned, &event.Data{Op: event.Updated, Resource: node, Changes: status.Changes}},
		{cordoned, status},
		{cordoned, updated("spec.replicas", int64(1), int64(2), "argocd-controller")},
		{spec(event.Updated, web, map[string]any{"replicas": int64(0)}), spec(event.Updated, web, map[string]any{"replicas": int64(3)})},
		{updated("spec.replicas", int64(3), int64(2), "x"), updated("spec.replicas", int64(2), int64(3), "x")},
		{&event.Data{Op: event.Created, Resource: role}, &event.Data{Op: event.Snapshot, Resource: role}},
		{&event.Data{Op: event.Absent, Resource: event.AbsenceResource}, status},
		{status, &event.Data{Op: event.Created, Resource: job}},
		{spec(event.Created, web, nil), &event.Data{Op: event.Created, Resource: web, After: map[string]any{"metadata": map[string]any{"name": "web"}}}},
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
			data *event.Data
			want bool
		}{{samples[i].yes, true}, {samples[i].no, false}} {
			if got, err := expr.Match(tc.data); got != tc.want || err != nil {
				t.Errorf("%s: %t, %v on %+v", e.cel, got, err, tc.data)
			}
		}
	}
}
