package samples

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Pods makes each pods for every one of apps applications, in list order.
func (g *Gen) Pods(f wire.Format, apps, each int) []Item {
	var out []Item
	for i := range apps {
		a := g.App(i)
		for j := range each {
			out = append(out, Encode(f, g.Pod(a, j)))
		}
	}
	sortItems(out)
	return out
}

// ConfigMaps makes n ConfigMaps with unrelated contents.
func (g *Gen) ConfigMaps(f wire.Format, n int) []Item {
	var out []Item
	for range n {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: g.name(3) + "-" + g.Suffix(5), Namespace: g.name(1), UID: g.uid(), ResourceVersion: g.nextRV(), CreationTimestamp: g.time()}, Data: map[string]string{}}
		fields := map[string]any{".": map[string]any{}}
		for range g.between(1, 5) {
			var b strings.Builder
			for range g.between(3, 60) {
				fmt.Fprintf(&b, "%s.%s=%s\n", g.word(), g.name(2), g.pick(g.name(2), fmt.Sprint(g.IntN(10_000)), g.hex(8), g.ip()))
			}
			k := g.name(2) + ".properties"
			c.Data[k], fields["f:"+k] = b.String(), map[string]any{}
		}
		at := g.time()
		c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: g.pick("helm", "kubectl-client-side-apply", "argocd-controller"), Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(asJSON(map[string]any{"f:data": fields}))}}
		out = append(out, Encode(f, c))
	}
	sortItems(out)
	return out
}

// Leases makes n leases of nodes: tiny objects of one shape.
func (g *Gen) Leases(f wire.Format, n int) []Item {
	var out []Item
	for i := range n {
		name, secs, at := fmt.Sprintf("node-%d", i), int32(40), metav1.NewMicroTime(g.time().Time)
		created := g.time()
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-node-lease", UID: g.uid(), ResourceVersion: g.nextRV(), CreationTimestamp: created,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: g.uid()}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update", APIVersion: "coordination.k8s.io/v1", Time: &created, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}}`)}}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &secs, RenewTime: &at}}
		out = append(out, Encode(f, l))
	}
	sortItems(out)
	return out
}

// ReplicaSets makes the revisions of apps Deployments.
func (g *Gen) ReplicaSets(f wire.Format, apps, revisions int) []Item {
	var out []Item
	for i := range apps {
		a := g.App(i)
		a.kind = "ReplicaSet"
		deployment := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: a.name, UID: g.uid()}
		for range revisions {
			g.Revise(a)
			none := int32(0)
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(a.generate, "-"), Namespace: a.ns, UID: g.uid(), ResourceVersion: g.nextRV(), CreationTimestamp: g.time(),
				Labels: a.template.Labels, OwnerReferences: []metav1.OwnerReference{deployment}}, Spec: appsv1.ReplicaSetSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: a.template.Labels}, Template: a.template}}
			out = append(out, Encode(f, rs))
		}
	}
	sortItems(out)
	return out
}

// Revise gives the application a typical new revision: a new image.
func (g *Gen) Revise(a *App) {
	hash := g.Suffix(10)
	a.fields = [2]string{}
	a.template = *a.template.DeepCopy()
	a.template.Labels["pod-template-hash"] = hash
	a.generate = a.name + "-" + hash + "-"
	a.template.Spec.Containers[0].Image = fmt.Sprintf("registry.example.com/%s:%s", a.name, g.hex(12))
	a.owner.Name, a.owner.UID = a.name+"-"+hash, g.uid()
	a.imageIDs = append([]string{"sha256:" + g.hex(64)}, a.imageIDs[1:]...)
}

// Life returns the versions of a pod until it runs.
func (g *Gen) Life(p *corev1.Pod) []*corev1.Pod {
	pending := p.DeepCopy()
	pending.ResourceVersion = g.nextRV()
	pending.Spec.NodeName = ""
	pending.Status = corev1.PodStatus{Phase: "Pending", QOSClass: p.Status.QOSClass}
	pending.ManagedFields = pending.ManagedFields[:1]
	for _, k := range []string{"containerID", "podIP", "podIPs"} {
		delete(pending.Annotations, "cni.projectcalico.org/"+k)
	}
	bound := pending.DeepCopy()
	bound.ResourceVersion = g.nextRV()
	bound.Spec.NodeName = p.Spec.NodeName
	bound.Status.Conditions = []corev1.PodCondition{{Type: "PodScheduled", Status: "True", LastTransitionTime: p.CreationTimestamp}}
	creating := p.DeepCopy()
	creating.ResourceVersion = g.nextRV()
	creating.Status.Phase, creating.Status.PodIP, creating.Status.PodIPs = "Pending", "", nil
	for i := range creating.Status.ContainerStatuses {
		cs := &creating.Status.ContainerStatuses[i]
		*cs = corev1.ContainerStatus{Name: cs.Name, Image: cs.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
	}
	for i := range creating.Status.Conditions {
		if c := &creating.Status.Conditions[i]; c.Type == "Ready" || c.Type == "ContainersReady" {
			c.Status, c.Reason, c.Message, c.LastTransitionTime = "False", "ContainersNotReady", "containers with unready status: ["+p.Spec.Containers[0].Name+"]", metav1.Time{}
		}
	}
	running := p.DeepCopy()
	running.ResourceVersion = g.nextRV()
	return []*corev1.Pod{pending, bound, creating, running}
}

func sortItems(items []Item) {
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
}

// Shuffled returns the items in another, fixed order.
func Shuffled(items []Item) []Item {
	out := slices.Clone(items)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
