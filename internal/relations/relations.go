// Package relations finds how objects of a cluster are related: what an object's JSON says about others, and what is
// related to an object.
//
// It knows the built-in kinds, the Gateway API's routes, and everything that has owner references, a pod template or a
// scaleTargetRef. It makes no requests: the objects come from a cluster or from a journal.
package relations

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Ref names an object. Namespace is empty for a cluster-scoped one.
type Ref struct {
	Group, Kind, Namespace, Name string
}

// String is kind/name, in lower case: "deployment/web".
func (r Ref) String() string { return strings.ToLower(r.Kind) + "/" + r.Name }

// Relation is how one object, the holder, refers to another one.
type Relation string

const (
	// OwnedBy means that the holder has an owner reference to the other object.
	OwnedBy Relation = "owned by"
	// Names means that the holder mounts or names a ConfigMap, a Secret, a claim, a ServiceAccount, a PriorityClass or a Gateway.
	Names Relation = "names"
	// Binds means that a claim is bound to a volume.
	Binds Relation = "bound to"
	// Selects means that the selector of a Service, a NetworkPolicy or a PodDisruptionBudget matches labels of pods.
	Selects Relation = "selects"
	// Scales means that an autoscaler has the other object as its target.
	Scales Relation = "scales"
	// Routes means that an Ingress or a route leads to a Service.
	Routes Relation = "routes to"
	// RunsOn means that a pod was scheduled to a node.
	RunsOn Relation = "runs on"
	// About means that an Event is about the other object.
	About Relation = "about"
)

// Edge is a reference to another object. UID is empty if the reference has none.
type Edge struct {
	Relation Relation
	To       Ref
	UID      string
}

// Facts are what one version of an object says about its relations.
type Facts struct {
	Self Ref
	UID  string
	// Edges are its references to other objects.
	Edges []Edge
	// Selector selects pods of the object's namespace; nil selects nothing.
	Selector labels.Selector
	// PodLabels are the labels of the pod, or of the pods that the template makes; nil for other objects.
	PodLabels labels.Set
}

// Of reads the relations of an object. The caller says what the object is, and which kinds are cluster-scoped; nil stands
// for those built into Kubernetes.
func Of(self Ref, object map[string]any, clusterScoped func(group, kind string) bool) Facts {
	if clusterScoped == nil {
		clusterScoped = ClusterScoped
	}
	r := reader{facts: Facts{Self: self, UID: jsonmap.Text(object, "metadata", "uid")}, object: object, clusterScoped: clusterScoped}
	for _, o := range jsonmap.List(object, "metadata", "ownerReferences") {
		m, _ := o.(map[string]any)
		r.add(OwnedBy, group(jsonmap.Text(m, "apiVersion")), jsonmap.Text(m, "kind"), "", jsonmap.Text(m, "name"), jsonmap.Text(m, "uid"))
	}
	r.pods()
	r.kind()
	return r.facts
}

// reader reads one object.
type reader struct {
	facts         Facts
	object        map[string]any
	clusterScoped func(group, kind string) bool
	added         map[Edge]bool
}

// add adds an edge. An empty namespace is the object's.
func (r *reader) add(relation Relation, group, kind, namespace, name, uid string) {
	if kind == "" || name == "" {
		return
	}
	switch {
	case r.clusterScoped(group, kind):
		namespace = ""
	case namespace == "":
		namespace = r.facts.Self.Namespace
	}
	e := Edge{relation, Ref{group, kind, namespace, name}, uid}
	if r.added[e] {
		return
	}
	if r.added == nil {
		r.added = map[Edge]bool{}
	}
	r.added[e] = true
	r.facts.Edges = append(r.facts.Edges, e)
}

// names adds an object of the core group that the object mounts or names.
func (r *reader) names(kind, name string) { r.add(Names, "", kind, "", name, "") }

// kind reads what only one kind has.
func (r *reader) kind() {
	o := r.object
	switch self := r.facts.Self; {
	case self.Group == "" && self.Kind == "Service":
		if s := stringsOf(jsonmap.Object(o, "spec", "selector")); len(s) > 0 {
			r.facts.Selector = labels.SelectorFromSet(s)
		}
	case self.Group == "networking.k8s.io" && self.Kind == "NetworkPolicy":
		r.facts.Selector = selector(jsonmap.Object(o, "spec", "podSelector"))
	case self.Group == "policy" && self.Kind == "PodDisruptionBudget":
		r.facts.Selector = selector(jsonmap.Object(o, "spec", "selector"))
	case self.Group == "networking.k8s.io" && self.Kind == "Ingress":
		r.ingress()
	case self.Group == "gateway.networking.k8s.io" && strings.HasSuffix(self.Kind, "Route"):
		r.route()
	case self.Group == "" && self.Kind == "PersistentVolumeClaim":
		r.add(Binds, "", "PersistentVolume", "", jsonmap.Text(o, "spec", "volumeName"), "")
	case self.Kind == "Event" && (self.Group == "" || self.Group == "events.k8s.io"):
		r.event()
	}
	r.target(jsonmap.Object(o, "spec", "scaleTargetRef"))
	if r.facts.Self.Kind == "VerticalPodAutoscaler" {
		r.target(jsonmap.Object(o, "spec", "targetRef"))
	}
}

// target adds the target of an autoscaler. A KEDA ScaledObject may leave out the kind, which is Deployment then.
func (r *reader) target(ref map[string]any) {
	kind, version := jsonmap.Text(ref, "kind"), jsonmap.Text(ref, "apiVersion")
	if kind == "" {
		kind = "Deployment"
	}
	if version == "" && (kind == "Deployment" || kind == "StatefulSet") {
		version = "apps/v1"
	}
	r.add(Scales, group(version), kind, "", jsonmap.Text(ref, "name"), "")
}

func (r *reader) ingress() {
	backend := func(of map[string]any) {
		r.add(Routes, "", "Service", "", jsonmap.Text(of, "service", "name"), "")
	}
	backend(jsonmap.Object(r.object, "spec", "defaultBackend"))
	each(r.object, func(rule map[string]any) {
		each(rule, func(path map[string]any) { backend(jsonmap.Object(path, "backend")) }, "http", "paths")
	}, "spec", "rules")
	each(r.object, func(tls map[string]any) { r.names("Secret", jsonmap.Text(tls, "secretName")) }, "spec", "tls")
}

// route reads a route of the Gateway API: source is the API's reference, v1.
func (r *reader) route() {
	const gateways = "gateway.networking.k8s.io"
	ref := func(relation Relation, m map[string]any, group, kind string) {
		if g, ok := m["group"].(string); ok {
			group = g
		}
		if k := jsonmap.Text(m, "kind"); k != "" {
			kind = k
		}
		r.add(relation, group, kind, jsonmap.Text(m, "namespace"), jsonmap.Text(m, "name"), "")
	}
	each(r.object, func(m map[string]any) { ref(Names, m, gateways, "Gateway") }, "spec", "parentRefs")
	each(r.object, func(rule map[string]any) {
		each(rule, func(m map[string]any) { ref(Routes, m, "", "Service") }, "backendRefs")
	}, "spec", "rules")
}

func (r *reader) event() {
	about := jsonmap.Object(r.object, "involvedObject")
	if about == nil {
		about = jsonmap.Object(r.object, "regarding")
	}
	r.add(About, group(jsonmap.Text(about, "apiVersion")), jsonmap.Text(about, "kind"), jsonmap.Text(about, "namespace"), jsonmap.Text(about, "name"), "")
}

// group is the group of an apiVersion.
func group(apiVersion string) string {
	if g, _, ok := strings.Cut(apiVersion, "/"); ok {
		return g
	}
	return ""
}

// ClusterScoped reports whether a built-in kind that other objects refer to is cluster-scoped.
func ClusterScoped(group, kind string) bool {
	switch kind {
	case "Node", "PersistentVolume", "Namespace":
		return group == ""
	case "PriorityClass":
		return group == "scheduling.k8s.io"
	case "RuntimeClass":
		return group == "node.k8s.io"
	}
	return false
}
