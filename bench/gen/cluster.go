package gen

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// Namespaces is the number of namespaces.
	Namespaces = 40
	// Nodes is the number of nodes.
	Nodes = 500
	// Owners is the number of teams with Widgets.
	Owners = 50
	region = "eu-west-1"
)

func namespaceName(i int) string { return areas[i%len(areas)] }

// Namespace returns the i-th namespace as a client creates it, i < Namespaces.
func (g *Generator) Namespace(i int) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i), Labels: map[string]string{
		"team": roles[i%len(roles)], "pod-security.kubernetes.io/enforce": "privileged", "istio-injection": []string{"enabled", "disabled"}[i%2],
	}}}
}

// ServiceAccounts returns the names of the service accounts of a namespace's pods.
func (g *Generator) ServiceAccounts(namespace string) []string {
	seen := map[string]bool{"default": true}
	names := []string{"default"}
	for _, a := range g.apps {
		for _, p := range a.places {
			if p.namespace == namespace && !seen[a.account] {
				seen[a.account] = true
				names = append(names, a.account)
			}
		}
	}
	return names
}

func nodeIP(i int) string { return fmt.Sprintf("10.0.%d.%d", 100+i/100, 100+i%100) }
func nodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.%s.compute.internal", 100+i/100, 100+i%100, region)
}
func nodeZone(i int) string { return region + "abc"[i%3:i%3+1] }

// Node returns the i-th node, i < Nodes, as its kubelet registers and reports it.
func (g *Generator) Node(i int) *corev1.Node {
	r := newRandom(g.seed, saltNode+uint64(i))
	recorded := corpus().Node
	n := &corev1.Node{}
	text, err := json.Marshal(recorded.Object)
	if err == nil {
		text = []byte(strings.NewReplacer(recorded.GetName(), nodeName(i), "10.0.100.100", nodeIP(i), region+"a", nodeZone(i)).Replace(string(text)))
		err = json.Unmarshal(text, n)
	}
	if err != nil {
		panic(fmt.Sprintf("gen: decode a node: %v", err))
	}
	n.TypeMeta = metav1.TypeMeta{}
	n.ObjectMeta = metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}
	n.Labels[corev1.LabelInstanceTypeStable], n.Labels["node-pool"] = pick(r, "m6i.2xlarge", "m6i.4xlarge", "r6i.4xlarge"), pick(r, "general", "batch", "data")
	m := mutator(r.Uint64())
	n.Spec.Taints = nil
	n.Spec.ProviderID = n.Spec.ProviderID[:len(n.Spec.ProviderID)-17] + r.hex(17)
	info := &n.Status.NodeInfo
	info.MachineID, info.SystemUUID, info.BootID = r.hex(32), r.uid(), r.uid()
	at := metav1.NewTime(time.Unix(Epoch-int64(r.IntN(90*24*3600)), 0).UTC())
	for c := range n.Status.Conditions {
		n.Status.Conditions[c].LastHeartbeatTime, n.Status.Conditions[c].LastTransitionTime = at, at
	}
	var images []corev1.ContainerImage
	for _, image := range n.Status.Images {
		if r.chance(30) {
			continue
		}
		for k, name := range image.Names {
			image.Names[k] = m.vary(name)
		}
		image.SizeBytes = m.integer(image.SizeBytes)
		images = append(images, image)
	}
	n.Status.Images = images
	return n
}

// Widget returns custom resource i as its owner applies it, with the status that its controller
// writes. The API server adds the rest of the metadata.
func (g *Generator) Widget(i int) *unstructured.Unstructured {
	r := newRandom(g.seed, saltWidget+uint64(i))
	n := r.IntN(Owners)
	o := newRandom(g.seed, saltOwner+uint64(n)) // for the common parts of the owner's objects
	base := pick(o, corpus().Widgets...)
	of, own := mutator(o.Uint64()), mutator(r.Uint64())
	owner := areas[n%len(areas)] + []string{"", "-next"}[n/len(areas)]
	name := fmt.Sprintf("%s-%s-%s", owner, pick(o, roles...), suffix(i))
	text, err := json.Marshal(base.Object)
	w := object{}
	if err == nil {
		text = []byte(strings.NewReplacer(base.GetName(), name, `"`+base.GetLabels()["owner"]+`"`, `"`+owner+`"`,
			base.GetLabels()["owner"]+".example.com", owner+".example.com").Replace(string(text)))
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		panic(fmt.Sprintf("gen: decode a widget: %v", err))
	}
	spec, status := w["spec"].(object), w["status"].(object)
	// The objects of an owner lack the same parts. Numbers, hashes and times differ between them.
	for key, v := range spec {
		if key == "settings" || key == "stages" || key == "description" {
			spec[key] = own.tree(of.tree(v, 15, key), 0, key)
		}
	}
	status["digest"] = r.hex(40)
	for _, key := range []string{"conditions", "results"} {
		if v, ok := status[key]; ok {
			status[key] = own.tree(v, 0, key)
		}
	}
	labels := w["metadata"].(object)["labels"].(object)
	labels["app.kubernetes.io/name"] = name[:len(name)-6]
	return &unstructured.Unstructured{Object: object{
		"apiVersion": Widgets.GroupVersion().String(), "kind": "Widget",
		"metadata": object{"name": name, "namespace": namespaceName(o.IntN(Namespaces)), "labels": labels},
		"spec":     spec, "status": status,
	}}
}
