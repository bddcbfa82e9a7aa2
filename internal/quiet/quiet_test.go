package quiet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/rules"
)

func defaultSet(tb testing.TB, user ...Rules) *Set {
	tb.Helper()
	s, err := New(user...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestQuiet(t *testing.T) {
	s := defaultSet(t)
	for _, tc := range []struct {
		why, group, resource, path string
		want                       bool
	}{
		{"differs with every write", "apps", "deployments", "metadata.resourceVersion", true},
		{"grows with every write of the spec", "example.com", "widgets", "metadata.generation", true},
		{"covered with all below", "", "pods", "metadata.managedFields[0].time", true},
		{"a copy of shown fields", "", "services", `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`, true},
		{"another annotation", "", "services", `metadata.annotations["example.com/owner"]`, false},
		{"a controller has seen it", "apps", "deployments", "status.observedGeneration", true},
		{"the same within a condition", "", "pods", "status.conditions[type=Ready].observedGeneration", true},
		{"a heartbeat", "", "nodes", "status.conditions[type=Ready].lastHeartbeatTime", true},
		{"the time of a change that is shown", "", "pods", "status.conditions[type=Ready].lastTransitionTime", true},
		{"conditions by index, as without a schema", "", "pods", "status.conditions[0].lastProbeTime", true},
		{"conditions of a Gateway's parents", "gateway.networking.k8s.io", "httproutes", "status.parents[0].conditions[type=Accepted].lastTransitionTime", true},
		{"a condition's status", "", "nodes", "status.conditions[type=Ready].status", false},
		{"a condition that appears", "", "nodes", "status.conditions[type=Gone]", false},
		{"a spec field of the same name", "example.com", "widgets", "spec.conditions[0].lastTransitionTime", false},
		{"a renewal", "coordination.k8s.io", "leases", "spec.renewTime", true},
		{"a new leader", "coordination.k8s.io", "leases", "spec.holderIdentity", false},
		{"another group's lease", "example.com", "leases", "spec.renewTime", false},
		{"election before Leases", "", "configmaps", `metadata.annotations["control-plane.alpha.kubernetes.io/leader"]`, true},
		{"beside a rollout", "apps", "deployments", `metadata.annotations["deployment.kubernetes.io/revision"]`, true},
		{"a person restarts", "apps", "deployments", `spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]`, false},
		{"set by a person", "apps", "deployments", "spec.replicas", false},
		{"images on a node", "", "nodes", "status.images[0].names", true},
		{"images elsewhere", "example.com", "nodes", "status.images", false},
		{"a taint", "", "nodes", "spec.taints", false},
		{"a measurement", "autoscaling", "horizontalpodautoscalers", "status.currentMetrics[0].resource.current.value", true},
		{"a decision", "autoscaling", "horizontalpodautoscalers", "status.desiredReplicas", false},
		{"a schedule ran", "batch", "cronjobs", "status.lastScheduleTime", true},
		{"a schedule was stopped", "batch", "cronjobs", "spec.suspend", false},
		{"Argo CD looked", "argoproj.io", "applications", "status.reconciledAt", true},
		{"Argo CD found", "argoproj.io", "applications", "status.sync.status", false},
		{"Flux, any of its groups", "kustomize.toolkit.fluxcd.io", "kustomizations", "status.lastHandledReconcileAt", true},
		{"a person asks Flux", "kustomize.toolkit.fluxcd.io", "kustomizations", `metadata.annotations["reconcile.fluxcd.io/requestedAt"]`, false},
		{"more than a quiet field", "", "pods", "metadata", false},
	} {
		path, err := diff.ParsePath(tc.path)
		if err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		if got := s.Quiet(tc.group, tc.resource, path); got != tc.want {
			t.Errorf("%s: Quiet(%s.%s, %s) = %v, want %v", tc.why, tc.resource, tc.group, tc.path, got, tc.want)
		}
	}
}

func TestHidden(t *testing.T) {
	s := defaultSet(t, Rules{Hidden: []string{"*.noise.example.com"}})
	for _, tc := range []struct {
		why, group, resource string
		want                 bool
	}{
		{"events", "", "events", true},
		{"events again", "events.k8s.io", "events", true},
		{"events of another API", "example.com", "events", false},
		{"leases", "coordination.k8s.io", "leases", true},
		{"endpoints", "", "endpoints", true},
		{"endpointslices", "discovery.k8s.io", "endpointslices", true},
		{"pods", "", "pods", false},
		{"the user's", "noise.example.com", "ticks", true},
	} {
		if got := s.Hidden(tc.group, tc.resource); got != tc.want {
			t.Errorf("%s: Hidden = %v, want %v", tc.why, got, tc.want)
		}
	}
}

func TestUserRules(t *testing.T) {
	user, err := Parse([]byte("quiet:\n- {resources: [widgets], paths: [spec.color]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := defaultSet(t, user)
	color := diff.Path{{Name: "spec"}, {Name: "color"}}
	if !s.Quiet("example.com", "widgets", color) {
		t.Error("the user's rule is not asked")
	}
	if s.Quiet("example.com", "gadgets", color) {
		t.Error("the user's rule is asked for another resource")
	}
	if !s.Quiet("example.com", "widgets", diff.Path{{Name: "metadata"}, {Name: "generation"}}) {
		t.Error("the default rules are lost")
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"an unknown key", "quiet: []\nquite: []\n", `line 2: unknown key "quite"`},
		{"an unknown key of a rule", "quiet:\n- resources: [pods]\n  path: [spec]\n", `line 3: unknown key "path"`},
		{"a key twice", "quiet:\n- paths: [a]\n  paths: [b]\n", `line 3: key "paths" occurs twice`},
		{"a wrong type", "quiet:\n- resources: [pods]\n  paths: spec\n", `line 3: key "paths"`},
		{"a wrong type above", "hidden: {a: b}\n", `line 1: key "hidden"`},
		{"no rule", "quiet:\n- spec.a\n", "line 2: want keys and values"},
		{"no mapping", "- a\n", "line 1: want keys and values"},
		{"a rule without paths", "quiet:\n- resources: [pods]\n", "line 2: a rule needs resources and paths"},
		{"a rule without resources", "quiet:\n- paths: [spec]\n", "line 2: a rule needs"},
		{"a path that cannot be read", "quiet:\n- resources: [pods]\n  paths: ['spec[']\n", `line 2: invalid path "spec["`},
		{"an object for a resource", "\n\nquiet:\n- {resources: [pod/a], paths: [spec]}\n", `line 4: resource "pod/a"`},
		{"a hidden kind", "hidden: [Pod]\n", `hidden: resource "Pod"`},
		{"a second document", "quiet: []\n---\nquiet: []\n", "second document"},
		{"no YAML", "quiet: [", "line 1"},
	} {
		_, err := Parse([]byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one that says %q", tc.why, err, tc.want)
		}
	}
	if _, err := New(Rules{Quiet: []rules.Rule{{Resources: []string{"*"}}}}); err == nil || !strings.Contains(err.Error(), "rule 1") {
		t.Errorf("New with an invalid rule: %v", err)
	}
	if r, err := Parse(nil); err != nil || len(r.Quiet) != 0 {
		t.Errorf("an empty text: %v, %v", r, err)
	}
}

func BenchmarkQuiet(b *testing.B) {
	s := defaultSet(b)
	path, err := diff.ParsePath("spec.template.spec.containers[name=app].image")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if s.Quiet("apps", "deployments", path) {
			b.Fatal(fmt.Sprint(path, " is quiet"))
		}
	}
}
