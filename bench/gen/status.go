package gen

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// state is the condition of a pod.
type state int

const (
	running state = iota
	restarted
	unready
	crashing
	succeeded // a Job's pod
	numStates
)

func drawState(r random, kind string) state {
	switch n := r.IntN(100); {
	case kind == "Job" && n < 70:
		return succeeded
	case n < 85:
		return running
	case n < 95:
		return restarted
	case n < 98:
		return unready
	default:
		return crashing
	}
}

// after is the state some updates later: a running pod becomes unready, crashes, recovers.
func (s state) after(step int) state {
	if s == succeeded {
		return s
	}
	return state((int(s) + step) % int(succeeded))
}

// Status returns the status that the kubelet of pod i reports.
func (g *Generator) Status(i int) corev1.PodStatus {
	id := g.identify(i, 0)
	pod := g.create(&id)
	admit(pod, &id)
	bind(pod, &id)
	return g.status(&id, pod)
}

// status is the status of an admitted and bound pod.
func (g *Generator) status(id *identity, pod *corev1.Pod) corev1.PodStatus {
	s := corev1.PodStatus{
		ObservedGeneration: 1, Phase: corev1.PodRunning, QOSClass: pod.Status.QOSClass,
		HostIP: id.texts[textHostIP], HostIPs: []corev1.HostIP{{IP: id.texts[textHostIP]}},
		PodIP: id.texts[textIP], PodIPs: []corev1.PodIP{{IP: id.texts[textIP]}},
		StartTime: ptr.To(id.time(timeScheduled)),
	}
	if id.state == succeeded {
		s.Phase = corev1.PodSucceeded
	}
	a := g.apps[id.app]
	for i, c := range pod.Spec.InitContainers {
		cs := a.containerStatus(id, c, i)
		if c.RestartPolicy == nil {
			cs.State = corev1.ContainerState{Terminated: ended(cs.ContainerID, id.time(timeInitStarted), id.time(timeInitDone), 0, "Completed")}
			cs.Started = ptr.To(false)
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, cs)
	}
	for i, c := range pod.Spec.Containers {
		cs := a.containerStatus(id, c, len(pod.Spec.InitContainers)+i)
		if i == 0 {
			id.state.apply(id, &cs)
		} else if id.state == succeeded {
			id.state.apply(id, &cs)
		}
		s.ContainerStatuses = append(s.ContainerStatuses, cs)
	}
	slices.SortFunc(s.ContainerStatuses, func(a, b corev1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
	s.Conditions = conditions(id, pod.Spec.Containers[0].Name)
	return s
}

// containerStatus is the status of a running container.
func (a *app) containerStatus(id *identity, c corev1.Container, n int) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: repository(c.Image) + "@" + a.digests[c.Image],
		ContainerID: "containerd://" + id.texts[textContainer+text(n)],
		Ready:       true, Started: ptr.To(true),
		State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: id.time(timeStarted)}},
		AllocatedResources: c.Resources.Requests, Resources: c.Resources.DeepCopy(),
	}
	if a.users {
		s.User = &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 1000, GID: 1000, SupplementalGroups: []int64{1000}}}
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

func ended(containerID string, from, to metav1.Time, code int32, reason string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ContainerID: containerID, StartedAt: from, FinishedAt: to, ExitCode: code, Reason: reason}
}

// apply changes the status of a container to match the state s.
func (s state) apply(id *identity, c *corev1.ContainerStatus) {
	before := func(code int32, reason string) {
		c.LastTerminationState.Terminated = ended("containerd://"+id.texts[textPrevious], id.time(timePreviousStarted), id.time(timePreviousEnded), code, reason)
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
			Message: fmt.Sprintf("back-off 5m0s restarting failed container=%s pod=%s", c.Name, id.texts[textUID])}}
	case succeeded:
		c.Ready, c.Started = false, ptr.To(false)
		c.State = corev1.ContainerState{Terminated: ended(c.ContainerID, id.time(timeStarted), id.time(timeReady), 0, "Completed")}
	}
}

// conditions returns the conditions in the kubelet's order.
func conditions(id *identity, container string) []corev1.PodCondition {
	list := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, LastTransitionTime: id.time(timeInitStarted)},
		{Type: corev1.PodInitialized, LastTransitionTime: id.time(timeInitDone)},
		{Type: corev1.PodReady, LastTransitionTime: id.time(timeReady)},
		{Type: corev1.ContainersReady, LastTransitionTime: id.time(timeReady)},
		{Type: corev1.PodScheduled, LastTransitionTime: id.time(timeScheduled)},
	}
	for i := range list {
		c := &list[i]
		c.Status, c.ObservedGeneration = corev1.ConditionTrue, 1
		ready := c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
		switch {
		case id.state == succeeded && (ready || c.Type == corev1.PodInitialized):
			c.Reason = "PodCompleted"
			if ready {
				c.Status = corev1.ConditionFalse
			}
		case ready && (id.state == unready || id.state == crashing):
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
			c.Message = fmt.Sprintf("containers with unready status: [%s]", container)
		}
	}
	return list
}
