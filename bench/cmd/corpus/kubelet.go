package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// state is the condition of a pod, in the order of gen.Workload.
type state int

const (
	running state = iota
	restarted
	unready
	crashing
	succeeded
)

// nodeCount is the number of nodes, and so of the pods of a DaemonSet: one for each state.
const nodeCount = 4

// nodes registers four nodes, in three zones.
func (r *recorder) nodes(ctx context.Context) ([]*corev1.Node, error) {
	objects, err := read(filepath.Join(r.dir, "node.yaml"))
	if err != nil {
		return nil, err
	}
	var list []*corev1.Node
	for i := range nodeCount {
		var n corev1.Node
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, &n); err != nil {
			return nil, fmt.Errorf("read node: %w", err)
		}
		ip := fmt.Sprint("10.0.100.", 100+i)
		n.Name = fmt.Sprintf("ip-%s.eu-west-1.compute.internal", strings.ReplaceAll(ip, ".", "-"))
		n.Labels["kubernetes.io/hostname"], n.Labels["topology.kubernetes.io/zone"] = n.Name, "eu-west-1"+"abca"[i:i+1]
		n.Status.Addresses[0].Address, n.Status.Addresses[1].Address = ip, n.Name
		for c := range n.Status.Conditions {
			n.Status.Conditions[c].LastHeartbeatTime = metav1.Now()
		}
		created, err := r.kubelet.CoreV1().Nodes().Create(ctx, &n, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("create node: %w", err)
		}
		created.Status = n.Status
		if created, err = r.kubelet.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("report node: %w", err)
		}
		list = append(list, created)
	}
	return list, nil
}

// renew renews the lease of a node, without which the controllers would see it as unreachable.
func (r *recorder) renew(ctx context.Context, node string) error {
	leases := r.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	l, err := leases.Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	}
	if err == nil {
		l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: &metav1.MicroTime{Time: time.Now()}}
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew lease of node: %w", err)
	}
	return nil
}

// hex is a number of 64 hexadecimal digits that depends on s.
func hex(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// at is a whole second after the start of the pod.
func at(seconds int) metav1.Time {
	return metav1.Unix(1_791_000_000+int64(seconds), 0)
}

// statusOf is the status that a kubelet reports for a bound pod.
func statusOf(p *corev1.Pod, state state) corev1.PodStatus {
	node := strings.Split(p.Spec.NodeName, ".")[0]
	hostIP := strings.ReplaceAll(strings.TrimPrefix(node, "ip-"), "-", ".")
	h := sha256.Sum256([]byte(p.UID))
	ip := fmt.Sprintf("10.%d.%d.%d", 100+h[0]%150, 100+h[1]%150, 100+h[2]%150)
	s := corev1.PodStatus{
		ObservedGeneration: 1, Phase: corev1.PodRunning, StartTime: ptr.To(at(1)),
		HostIP: hostIP, HostIPs: []corev1.HostIP{{IP: hostIP}}, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
	}
	if state == succeeded {
		s.Phase = corev1.PodSucceeded
	}
	for _, c := range p.Spec.InitContainers {
		cs := containerStatus(p, c)
		cs.State, cs.Started = corev1.ContainerState{Terminated: ended(cs.ContainerID, 2, 5, 0, "Completed")}, ptr.To(false)
		s.InitContainerStatuses = append(s.InitContainerStatuses, cs)
	}
	for i, c := range p.Spec.Containers {
		cs := containerStatus(p, c)
		if i == 0 || state == succeeded {
			state.apply(p, &cs)
		}
		s.ContainerStatuses = append(s.ContainerStatuses, cs)
	}
	slices.SortFunc(s.ContainerStatuses, func(a, b corev1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
	s.Conditions = conditions(state, p.Spec.Containers[0].Name)
	return s
}

// containerStatus is the status of a running container. The image's digest depends on the image only.
func containerStatus(p *corev1.Pod, c corev1.Container) corev1.ContainerStatus {
	repository, _, _ := strings.Cut(c.Image, ":")
	s := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: repository + "@sha256:" + hex(c.Image), ContainerID: "containerd://" + hex(string(p.UID)+c.Name),
		Ready: true, Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(6)}},
		AllocatedResources: c.Resources.Requests, Resources: c.Resources.DeepCopy(),
		User: &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 1000, GID: 1000, SupplementalGroups: []int64{1000}}},
	}
	for _, m := range c.VolumeMounts {
		status := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			status.RecursiveReadOnly = ptr.To(corev1.RecursiveReadOnlyDisabled)
		}
		s.VolumeMounts = append(s.VolumeMounts, status)
	}
	return s
}

func ended(containerID string, from, to int, code int32, reason string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ContainerID: containerID, StartedAt: at(from), FinishedAt: at(to), ExitCode: code, Reason: reason}
}

// apply changes the status of a container to match the state s.
func (s state) apply(p *corev1.Pod, c *corev1.ContainerStatus) {
	before := func(code int32, reason string) {
		c.LastTerminationState.Terminated = ended("containerd://"+hex(string(p.UID)+"before"), 3, 4, code, reason)
	}
	switch s {
	case restarted:
		c.RestartCount = 1
		before(137, "OOMKilled")
	case unready:
		c.Ready, c.RestartCount = false, 2
		before(1, "Error")
	case crashing:
		c.Ready, c.Started, c.RestartCount = false, ptr.To(false), 7
		before(2, "Error")
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off 5m0s restarting failed container=%s pod=%s_%s(%s)", c.Name, p.Name, p.Namespace, p.UID)}}
	case succeeded:
		c.Ready, c.Started = false, ptr.To(false)
		c.State = corev1.ContainerState{Terminated: ended(c.ContainerID, 6, 60, 0, "Completed")}
	}
}

// conditions returns the conditions in the kubelet's order.
func conditions(state state, container string) []corev1.PodCondition {
	list := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, LastTransitionTime: at(2)},
		{Type: corev1.PodInitialized, LastTransitionTime: at(5)},
		{Type: corev1.PodReady, LastTransitionTime: at(8)},
		{Type: corev1.ContainersReady, LastTransitionTime: at(8)},
		{Type: corev1.PodScheduled, LastTransitionTime: at(1)},
	}
	for i := range list {
		c := &list[i]
		c.Status, c.ObservedGeneration = corev1.ConditionTrue, 1
		ready := c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
		switch {
		case state == succeeded && (ready || c.Type == corev1.PodInitialized):
			c.Reason = "PodCompleted"
			if ready {
				c.Status = corev1.ConditionFalse
			}
		case ready && (state == unready || state == crashing):
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
			c.Message = fmt.Sprintf("containers with unready status: [%s]", container)
		}
	}
	return list
}
