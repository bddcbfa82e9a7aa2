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
		{"an image", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{
			quiet(field("metadata.generation", unknown, "")), field("spec.template.spec.containers[name=app].image", set, "")}}, false},
		{"an image, and a status in the same event", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{
			field("spec.paused", set, ""), field("status.replicas", kcm, "status")}}, false},
		{"a field that was removed", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{field("spec.paused", unknown, "")}}, false},
		{"a field that a controller removed with another", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{
			field("metadata.annotations.a", unknown, ""), field("metadata.annotations.b", kcm, "")}}, true},
		{"a status", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{field("status.replicas", unknown, "")}}, true},
		{"an operator's status", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{field("status.replicas", "operator", "status")}}, true},
		{"an operator's spec", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{field("spec.replicas", "operator", "")}}, false},
		{"the autoscaler", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{field("spec.replicas", kcm, "scale")}}, true},
		{"a person's scaling", Change{Meta: Meta{Op: event.Updated, Kind: deployment.ID()}, Names: deployment.Names(), Fields: []FieldChange{field("spec.replicas", "kubectl", "scale")}}, false},
		{"a label of a pod", Change{Meta: Meta{Op: event.Updated, Kind: pod.ID(), Owner: owner}, Names: pod.Names(), Fields: []FieldChange{field("metadata.labels.a", "kubectl-label", "")}}, false},
		{"a pod that its Job's controller has counted", Change{Meta: Meta{Op: event.Updated, Kind: pod.ID(), Owner: &event.Owner{Kind: "Job", Name: "j", UID: "1"}}, Names: pod.Names(), Fields: []FieldChange{
			field("metadata.finalizers", unknown, "")}}, true},
		{"a finalizer of another pod", Change{Meta: Meta{Op: event.Updated, Kind: pod.ID(), Owner: owner}, Names: pod.Names(), Fields: []FieldChange{field("metadata.finalizers", unknown, "")}}, false},
		{"a binding", Change{Meta: Meta{Op: event.Updated, Kind: pod.ID()}, Names: pod.Names(), Fields: []FieldChange{field("spec.nodeName", unknown, "")}}, true},
		{"a deletion that waits", Change{Meta: Meta{Op: event.Updated, Kind: pod.ID()}, Names: pod.Names(), Fields: []FieldChange{field("metadata.deletionTimestamp", unknown, "")}}, true},
		{"a new pod", Change{Meta: Meta{Op: event.Created, Kind: pod.ID(), Owner: owner, Manager: kcm}, Names: pod.Names()}, true},
		{"a new Deployment", Change{Meta: Meta{Op: event.Created, Kind: deployment.ID(), Manager: "helm"}, Names: deployment.Names()}, false},
		{"the default ServiceAccount", Change{Meta: Meta{Op: event.Created, Kind: Resource{Kind: "ServiceAccount"}.ID(), Manager: kcm}, Names: Resource{Kind: "ServiceAccount"}.Names()}, true},
		{"a pod that goes", Change{Meta: Meta{Op: event.Deleted, Kind: pod.ID(), Owner: owner, Manager: unknown}, Names: pod.Names()}, true},
		{"a Deployment that goes", Change{Meta: Meta{Op: event.Deleted, Kind: deployment.ID(), Manager: unknown}, Names: deployment.Names()}, false},
		{"a Lease", Change{
			Meta:   Meta{Op: event.Updated, Kind: Resource{Group: "coordination.k8s.io", Kind: "Lease"}.ID()},
			Names:  Resource{Group: "coordination.k8s.io", Kind: "Lease"}.Names(),
			Fields: []FieldChange{field("spec.holderIdentity", "operator", "")},
		}, true},
		{"a conversion", Change{Meta: Meta{Op: event.Converted, Kind: deployment.ID()}, Names: deployment.Names()}, true},
		{"a gap", Change{Meta: Meta{Op: event.Gap, Kind: Resource{Kind: "Lease", Group: "coordination.k8s.io"}.ID()}, Names: Resource{Kind: "Lease", Group: "coordination.k8s.io"}.Names()}, false},
		{"an absence", Change{Meta: Meta{Op: event.Absent}}, false},
	} {
		if got := tc.c.Automatic(); got != tc.want {
			t.Errorf("%s: automatic is %v, want %v", tc.name, got, tc.want)
		}
	}
}
