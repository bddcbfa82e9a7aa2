package samples

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod makes one running pod of the application.
func (g *Gen) Pod(a *App, ordinal int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *a.template.ObjectMeta.DeepCopy(), Spec: *a.template.Spec.DeepCopy()}
	p.Name = a.generate + g.Suffix(5)
	if a.kind == "StatefulSet" {
		p.Name = fmt.Sprintf("%s%d", a.generate, ordinal)
	}
	p.Namespace, p.GenerateName, p.UID, p.ResourceVersion = a.ns, a.generate, g.uid(), g.nextRV()
	p.OwnerReferences = []metav1.OwnerReference{a.owner}
	p.CreationTimestamp = g.time()
	ip := g.ip()
	if a.calico {
		p.Annotations["cni.projectcalico.org/containerID"] = g.hex(64)
		p.Annotations["cni.projectcalico.org/podIP"] = ip + "/32"
		p.Annotations["cni.projectcalico.org/podIPs"] = ip + "/32"
	}
	token := "kube-api-access-" + g.Suffix(5)
	mode, expiry := int32(420), int64(3607)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode,
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expiry, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
		}}}})
	mount := func(cs []corev1.Container) {
		for i := range cs {
			cs[i].VolumeMounts = append(cs[i].VolumeMounts, corev1.VolumeMount{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
		}
	}
	mount(p.Spec.Containers)
	mount(p.Spec.InitContainers)
	node := g.IntN(500)
	p.Spec.NodeName = fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", node%4, node/2, node*7%256)
	p.Status = g.status(a, p, ip, fmt.Sprintf("10.%d.%d.%d", node%4, node/2, node*7%256))
	p.ManagedFields = managed(a, p, ip)
	return p
}

func (g *Gen) status(a *App, p *corev1.Pod, ip, hostIP string) corev1.PodStatus {
	started := metav1.NewTime(p.CreationTimestamp.Add(time.Duration(g.between(1, 5)) * time.Second))
	ready := metav1.NewTime(started.Add(time.Duration(g.between(3, 90)) * time.Second))
	s := corev1.PodStatus{Phase: "Running", HostIP: hostIP, HostIPs: []corev1.HostIP{{IP: hostIP}}, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &started, QOSClass: "Burstable"}
	for _, t := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		at := started
		if t == "Ready" || t == "ContainersReady" {
			at = ready
		}
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: "True", LastTransitionTime: at})
	}
	yes := true
	for i, c := range p.Spec.Containers {
		cs := corev1.ContainerStatus{Name: c.Name, Ready: true, Started: &yes, Image: c.Image, ContainerID: "containerd://" + g.hex(64),
			ImageID: strings.Split(c.Image, ":")[0] + "@" + a.imageIDs[i], State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ready}}}
		if g.chance(10) {
			cs.RestartCount = int32(g.between(1, 9))
			cs.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", StartedAt: started, FinishedAt: ready, ContainerID: "containerd://" + g.hex(64)}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, cs)
	}
	for i, c := range p.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true, Image: c.Image, ContainerID: "containerd://" + g.hex(64),
			ImageID: strings.Split(c.Image, ":")[0] + "@" + a.imageIDs[len(p.Spec.Containers)+i],
			State:   corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: started, FinishedAt: started, ContainerID: "containerd://" + g.hex(64)}}})
	}
	return s
}
