package change

import (
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// TestAutomatic distinguishes a user's changes from controllers' routine.
func TestAutomatic(t *testing.T) {
	deployment := Resource{Group: "apps", Resource: "deployments", Kind: "Deployment"}
	pod := Resource{Resource: "pods", Kind: "Pod"}
	owner := &event.Owner{Kind: "ReplicaSet", Name: "web-1", UID: "1"}
	field := func(path, manager, subresource string) FieldChange {
		p, err := diff.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		return FieldChange{Change: diff.Change{Path: p}, Manager: manager, Subresource: subresource}
	}
	quiet := func(f FieldChange) FieldChange { f.Quiet = true; return f }
	const kcm, set, unknown = "kube-controller-manager", "kubectl-set", "?"
	for _, tc := range []struct {
		name string
		c    Change
		want bool
	}{
		{"an image", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{
			quiet(field("metadata.generation", unknown, "")), field("spec.template.spec.containers[name=app].image", set, "")}}, false},
		{"an image, and a status in the same event", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{
			field("spec.paused", set, ""), field("status.replicas", kcm, "status")}}, false},
		{"a field that was removed", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{field("spec.paused", unknown, "")}}, false},
		{"a field that a controller removed with another", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{
			field("metadata.annotations.a", unknown, ""), field("metadata.annotations.b", kcm, "")}}, true},
		{"a status", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{field("status.replicas", unknown, "")}}, true},
		{"an operator's status", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{field("status.replicas", "operator", "status")}}, true},
		{"an operator's spec", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{field("spec.replicas", "operator", "")}}, false},
		{"the autoscaler", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{field("spec.replicas", kcm, "scale")}}, true},
		{"a person's scaling", Change{Op: event.Updated, Resource: deployment, Fields: []FieldChange{field("spec.replicas", "kubectl", "scale")}}, false},
		{"a label of a pod", Change{Op: event.Updated, Resource: pod, Owner: owner, Fields: []FieldChange{field("metadata.labels.a", "kubectl-label", "")}}, false},
		{"a pod that its Job's controller has counted", Change{Op: event.Updated, Resource: pod, Owner: &event.Owner{Kind: "Job", Name: "j", UID: "1"}, Fields: []FieldChange{
			field("metadata.finalizers", unknown, "")}}, true},
		{"a finalizer of another pod", Change{Op: event.Updated, Resource: pod, Owner: owner, Fields: []FieldChange{field("metadata.finalizers", unknown, "")}}, false},
		{"a binding", Change{Op: event.Updated, Resource: pod, Fields: []FieldChange{field("spec.nodeName", unknown, "")}}, true},
		{"a deletion that waits", Change{Op: event.Updated, Resource: pod, Fields: []FieldChange{field("metadata.deletionTimestamp", unknown, "")}}, true},
		{"a new pod", Change{Op: event.Created, Resource: pod, Owner: owner, Manager: kcm}, true},
		{"a new Deployment", Change{Op: event.Created, Resource: deployment, Manager: "helm"}, false},
		{"the default ServiceAccount", Change{Op: event.Created, Resource: Resource{Kind: "ServiceAccount"}, Manager: kcm}, true},
		{"a pod that goes", Change{Op: event.Deleted, Resource: pod, Owner: owner, Manager: unknown}, true},
		{"a Deployment that goes", Change{Op: event.Deleted, Resource: deployment, Manager: unknown}, false},
		{"a Lease", Change{Op: event.Updated, Resource: Resource{Group: "coordination.k8s.io", Kind: "Lease"},
			Fields: []FieldChange{field("spec.holderIdentity", "operator", "")}}, true},
		{"a conversion", Change{Op: event.Converted, Resource: deployment}, true},
		{"a gap", Change{Op: event.Gap, Resource: Resource{Kind: "Lease", Group: "coordination.k8s.io"}}, false},
		{"an absence", Change{Op: event.Absent}, false},
	} {
		if got := tc.c.Automatic(); got != tc.want {
			t.Errorf("%s: automatic is %v, want %v", tc.name, got, tc.want)
		}
	}
}
