package relations

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestOf: what each kind of object refers to.
func TestOf(t *testing.T) {
	for _, tc := range []struct{ why, object, want string }{
		{"a pod names what it mounts and reads, and runs on a node", `
kind: Pod
metadata: {ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1}], labels: {app: web}}
spec:
  nodeName: n1
  serviceAccountName: sa
  priorityClassName: high
  imagePullSecrets: [{name: pull}]
  initContainers: [{env: [{valueFrom: {configMapKeyRef: {name: cm1}}}, {valueFrom: {secretKeyRef: {name: s1}}}]}]
  containers: [{envFrom: [{configMapRef: {name: cm2}}, {secretRef: {name: s2}}]}]
  volumes:
  - {name: a, configMap: {name: cm3}}
  - {name: b, secret: {secretName: s3}}
  - {name: c, persistentVolumeClaim: {claimName: pvc}}
  - {name: d, ephemeral: {}}
  - {name: e, projected: {sources: [{configMap: {name: cm4}}, {secret: {name: s4}}]}}
  - {name: f, csi: {nodePublishSecretRef: {name: s5}}}`,
			"owned by ns/replicaset/web-1, names ns/serviceaccount/sa, names ns/secret/pull, names /priorityclass/high, runs on /node/n1, " +
				"names ns/configmap/cm3, names ns/secret/s3, names ns/persistentvolumeclaim/pvc, names ns/persistentvolumeclaim/x-d, names ns/configmap/cm4, names ns/secret/s4, " +
				"names ns/secret/s5, names ns/configmap/cm1, names ns/secret/s1, names ns/configmap/cm2, names ns/secret/s2; pods app=web"},
		{"any kind with a pod template, such as a custom one", "kind: Rollout\nspec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{envFrom: [{configMapRef: {name: c}}]}]}}}", "names ns/configmap/c; pods a=b"},
		{"a CronJob's template is deeper", "kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{envFrom: [{secretRef: {name: c}}]}]}}}}}", "names ns/secret/c; pods "},
		{"a Service selects by equality", "kind: Service\nspec: {selector: {app: web}}", "; selects app=web"},
		{"a Service without a selector selects nothing", "kind: Service\nspec: {selector: {}}", ""},
		{"an empty podSelector selects all pods", "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec: {podSelector: {}}", "; selects "},
		{"expressions", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {selector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}}", "; selects a notin (b)"},
		{"an invalid selector selects nothing", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {selector: {matchExpressions: [{key: a, operator: Like}]}}", ""},
		{"an autoscaler", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}}", "scales ns/statefulset/db"},
		{"KEDA's target is a Deployment by default", "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nspec: {scaleTargetRef: {name: web}}", "scales ns/deployment/web"},
		{"an Ingress", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {defaultBackend: {service: {name: a}}, tls: [{secretName: s}], rules: [{http: {paths: [{backend: {service: {name: b}}}]}}]}",
			"routes to ns/service/a, routes to ns/service/b, names ns/secret/s"},
		{"a route of the Gateway API, to another namespace", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: a}, {name: b, namespace: other}]}]}",
			"names ns/gateway/g, routes to ns/service/a, routes to other/service/b"},
		{"a claim and its volume, which is cluster-scoped", "kind: PersistentVolumeClaim\nspec: {volumeName: pv}", "bound to /persistentvolume/pv"},
		{"an Event about a node", "kind: Event\ninvolvedObject: {kind: Node, name: n1}", "about /node/n1"},
		{"an Event of the newer group", "apiVersion: events.k8s.io/v1\nkind: Event\nregarding: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: shop}", "about shop/deployment/web"},
		{"wrong types are no references", "kind: Pod\nmetadata: {ownerReferences: x, labels: [1]}\nspec: {containers: {a: 1}, volumes: [1, {configMap: []}], nodeName: 3}", "; pods "},
	} {
		if got := describe(parse(t, tc.object)); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.why, got, tc.want)
		}
	}
}

func parse(t *testing.T, text string) Facts {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return Of(Ref{group(str(o["apiVersion"])), str(o["kind"]), "ns", "x"}, o, nil)
}

func str(v any) string { s, _ := v.(string); return s }

func describe(f Facts) string {
	var edges []string
	for _, e := range f.Edges {
		edges = append(edges, fmt.Sprintf("%s %s/%s", e.Relation, e.To.Namespace, e.To))
	}
	out := strings.Join(edges, ", ")
	if f.Selector != nil {
		out += "; selects " + f.Selector.String()
	}
	if f.PodLabels != nil {
		out += "; pods " + f.PodLabels.String()
	}
	return out
}

// TestRecreated: an owner reference to an earlier object of the name is no relation.
func TestRecreated(t *testing.T) {
	g := NewGraph()
	owner, child := Ref{Kind: "A", Name: "a"}, Ref{Kind: "B", Name: "b"}
	g.Add(Facts{Self: child, Edges: []Edge{{OwnedBy, owner, "old"}}})
	if n := g.Neighbours(child); len(n) != 1 {
		t.Errorf("an owner that is not known: %v", n)
	}
	g.Add(Facts{Self: owner, UID: "new"})
	if n := g.Neighbours(child); len(n) != 0 {
		t.Errorf("another owner of the name: %v", n)
	}
	g.Add(Facts{Self: owner, UID: "old"})
	if n := g.Neighbours(owner); !cmp.Equal(n, []Neighbour{{child, OwnedBy, true}}) {
		t.Errorf("both were recorded: %v", n)
	}
}

// random makes a cluster with many relations, some of them absurd.
func random(r *rand.Rand) map[Ref][]Facts {
	kinds := []Ref{{Kind: "Pod"}, {Group: "apps", Kind: "Deployment"}, {Kind: "ConfigMap"}, {Kind: "Service"}, {Group: "networking.k8s.io", Kind: "Ingress"}, {Kind: "Node"}, {Kind: "Event"}, {Kind: "PersistentVolumeClaim"}}
	var all []Ref
	for range 25 {
		ref := kinds[r.IntN(len(kinds))]
		ref.Namespace, ref.Name = "ns", fmt.Sprint(r.IntN(6))
		if ref.Kind == "Node" {
			ref.Namespace = ""
		}
		if !slices.Contains(all, ref) {
			all = append(all, ref)
		}
	}
	relations := []Relation{OwnedBy, Names, Binds, Scales, Routes, RunsOn, About}
	out := map[Ref][]Facts{}
	for _, self := range all {
		for range 1 + r.IntN(2) {
			f := Facts{Self: self, UID: fmt.Sprint(r.IntN(2))}
			for range r.IntN(3) {
				e := Edge{Relation: relations[r.IntN(len(relations))], To: all[r.IntN(len(all))]}
				if r.IntN(3) == 0 {
					e.UID = fmt.Sprint(r.IntN(3))
				}
				f.Edges = append(f.Edges, e)
			}
			switch self.Kind {
			case "Service":
				f.Selector = selector(map[string]any{"matchLabels": map[string]any{"app": fmt.Sprint(r.IntN(3))}})
			case "Pod", "Deployment":
				f.PodLabels = map[string]string{"app": fmt.Sprint(r.IntN(3))}
			}
			out[self] = append(out[self], f)
		}
	}
	return out
}

// holds reports whether a relation between a holder and another object holds in some version, read from the facts alone.
func holds(facts map[Ref][]Facts, holder, other Ref, relation Relation) bool {
	for _, h := range facts[holder] {
		for _, e := range h.Edges {
			known := len(facts[other]) == 0 || e.UID == "" || slices.ContainsFunc(facts[other], func(f Facts) bool { return f.UID == e.UID })
			if e.Relation == relation && e.To == other && known {
				return true
			}
		}
		if relation != Selects || h.Selector == nil || holder.Namespace != other.Namespace {
			continue
		}
		if slices.ContainsFunc(facts[other], func(f Facts) bool { return f.PodLabels != nil && h.Selector.Matches(f.PodLabels) }) {
			return true
		}
	}
	return false
}

// TestClosure: in random clusters, Related finds what repeated application of the rules finds, and each object has a way to a
// named one on which every relation holds.
func TestClosure(t *testing.T) {
	relations := []Relation{OwnedBy, Names, Binds, Selects, Scales, Routes, RunsOn, About}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		facts := random(r)
		g := NewGraph()
		refs := slices.SortedFunc(maps.Keys(facts), func(a, b Ref) int { return strings.Compare(a.Namespace+a.String(), b.Namespace+b.String()) })
		for _, ref := range refs {
			for _, f := range facts[ref] {
				g.Add(f)
			}
		}
		named := refs[r.IntN(len(refs))]
		type place struct {
			Ref
			role role
		}
		want := map[place]bool{{named, own}: true}
		for range MaxSteps {
			reached := maps.Clone(want)
			for p := range reached {
				for _, o := range refs {
					for _, relation := range relations {
						for _, back := range []bool{false, true} {
							holder, other := p.Ref, o
							if back {
								holder, other = o, p.Ref
							}
							if as, ok := next(p.Ref, p.role, Neighbour{o, relation, back}); ok && o != p.Ref && holds(facts, holder, other, relation) {
								want[place{o, as}] = true
							}
						}
					}
				}
			}
		}
		objects := map[Ref]bool{}
		for p := range want {
			objects[p.Ref] = true
		}
		got := map[Ref]bool{}
		for _, f := range g.Related([]Ref{named}) {
			got[f.Ref] = true
			for ; f.Via != nil; f = f.Via {
				holder, other := f.Via.Ref, f.Ref
				if f.Back {
					holder, other = other, holder
				}
				if !holds(facts, holder, other, f.Relation) {
					t.Errorf("seed %d: %v %s %v does not hold", seed, holder, f.Relation, other)
				}
			}
			if f.Ref != named {
				t.Errorf("seed %d: the way begins at %v", seed, f.Ref)
			}
		}
		if diff := cmp.Diff(objects, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// TestManyReferences: an object with very many references, in several versions, has each of them once.
func TestManyReferences(t *testing.T) {
	const n = 20_000
	g := NewGraph()
	self := Ref{Kind: "Pod", Namespace: "ns", Name: "web"}
	for version := range 3 {
		f := Facts{Self: self, UID: fmt.Sprint("uid-", version%2), PodLabels: map[string]string{"app": "web"}}
		for i := range n {
			f.Edges = append(f.Edges, Edge{Names, Ref{Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprint("c", i)}, ""})
		}
		g.Add(f)
	}
	node := g.nodes[self]
	if len(node.edges) != n || len(node.uids) != 2 || len(node.labels) != 1 || len(g.Neighbours(self)) != n {
		t.Errorf("%d edges, %d UIDs, %d sets of labels, %d neighbours", len(node.edges), len(node.uids), len(node.labels), len(g.Neighbours(self)))
	}
}
