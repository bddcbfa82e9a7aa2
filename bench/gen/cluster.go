package gen

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Namespaces is the number of namespaces.
	Namespaces = 40
	// Nodes is the number of nodes.
	Nodes  = 500
	region = "eu-west-1"
)

func namespaceName(i int) string { return areas[i%len(areas)] }

// Namespace returns the i-th namespace as a client creates it, i < Namespaces.
func (g *Generator) Namespace(i int) *corev1.Namespace {
	name := namespaceName(i)
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"team": teams[i%len(teams)], "pod-security.kubernetes.io/enforce": "privileged", "istio-injection": []string{"enabled", "disabled"}[i%2],
	}}}
}

// ServiceAccounts returns the names of the service accounts of a namespace's pods.
func (g *Generator) ServiceAccounts(namespace string) []string {
	seen := map[string]bool{"default": true}
	names := []string{"default"}
	for _, a := range g.apps {
		for _, p := range a.places {
			if name := a.spec.ServiceAccountName; p.namespace == namespace && !seen[name] {
				seen[name] = true
				names = append(names, name)
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
	at := metav1.NewTime(time.Unix(Epoch-int64(r.IntN(90*24*3600)), 0).UTC())
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dKi", 63_000_000+r.IntN(900_000))),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("104845292Ki"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
			"kubernetes.io/hostname": nodeName(i), "node.kubernetes.io/instance-type": pick(r, "m6i.2xlarge", "m6i.4xlarge", "r6i.4xlarge"),
			"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": nodeZone(i), "node-pool": pick(r, "general", "batch", "data"),
		}},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///%s/i-%s", nodeZone(i), r.hex(17))},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP(i)}, {Type: corev1.NodeHostName, Address: nodeName(i)}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: r.hex(32), SystemUUID: r.uid(), BootID: r.uid(), KernelVersion: "6.12.40-63.114.amzn2023.x86_64", OSImage: "Amazon Linux 2023",
				ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	for _, c := range []struct {
		kind            corev1.NodeConditionType
		status          corev1.ConditionStatus
		reason, message string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"},
	} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: c.kind, Status: c.status, Reason: c.reason, Message: c.message,
			LastHeartbeatTime: at, LastTransitionTime: at})
	}
	for range r.between(15, 40) {
		repo := pick(r, registries...) + "/" + pick(r, areas...) + "-" + pick(r, roles...)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{repo + "@sha256:" + r.hex(64), repo + ":" + imageTag(r)}, SizeBytes: int64(r.IntN(900_000_000)),
		})
	}
	return n
}
