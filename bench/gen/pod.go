package gen

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tokenPrefix begins the name of the volume with the token of a pod's service account, which admission adds.
const tokenPrefix = "kube-api-access-"

// state is the condition of a pod, an index of Workload.Pods.
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

// Pod returns pod i as a client reads it from the API server, without apiVersion and kind.
func (g *Generator) Pod(i int) *corev1.Pod { return g.PodAfter(i, 0) }

// PodAfter returns pod i after a number of updates by its kubelet: each changes conditions and
// container statuses. The resource version stays, for the server to set.
func (g *Generator) PodAfter(i, step int) *corev1.Pod {
	id := g.identify(i, step)
	return g.complete(&id)
}

// Creation returns pod i as its controller creates it, without the additions of the API server, the
// scheduler and the kubelet, and without apiVersion and kind.
func (g *Generator) Creation(i int) *corev1.Pod {
	p := g.Pod(i)
	p.UID, p.ResourceVersion, p.Generation, p.CreationTimestamp, p.ManagedFields = "", "", 0, metav1.Time{}, nil
	delete(p.Labels, corev1.LabelTopologyRegion)
	delete(p.Labels, corev1.LabelTopologyZone)
	p.Status = corev1.PodStatus{}
	s := &p.Spec
	s.NodeName, s.Priority, s.PreemptionPolicy = "", nil, nil
	if s.ServiceAccountName == "default" {
		s.ServiceAccountName, s.DeprecatedServiceAccount = "", ""
	}
	s.Tolerations = slices.DeleteFunc(s.Tolerations, func(t corev1.Toleration) bool { return t.TolerationSeconds != nil })
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, tokenPrefix) })
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			list[i].VolumeMounts = slices.DeleteFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, tokenPrefix) })
		}
	}
	return p
}

// complete returns the pod as the API server stores it.
func (g *Generator) complete(id *identity) *corev1.Pod {
	a := g.apps[id.app]
	pod := a.pod(id.state, id.place)
	id.name(pod, g.name(id))
	id.spec(&pod.Spec)
	for i := range pod.ManagedFields {
		e, at := &pod.ManagedFields[i], id.time(timeCreated)
		if e.Subresource == "status" {
			replaceFields(e, pod.Status.PodIP, id.texts[textIP])
			at = id.time(timeReported)
		}
		e.Time = &at
	}
	id.status(&pod.Status)
	return pod
}

// name gives the pod its metadata, and its name wherever it occurs.
func (id *identity) name(pod *corev1.Pod, name string) {
	for i := range pod.Spec.Volumes {
		if c := pod.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
			c.ClaimName = strings.ReplaceAll(c.ClaimName, pod.Name, name)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if w := pod.Status.ContainerStatuses[i].State.Waiting; w != nil {
			w.Message, _, _ = strings.Cut(w.Message, " pod=")
			w.Message += " pod=" + name + "_" + pod.Namespace + "(" + id.texts[textUID] + ")"
		}
	}
	pod.Name, pod.UID, pod.ResourceVersion = name, types.UID(id.texts[textUID]), id.texts[textVersion]
	pod.CreationTimestamp = id.time(timeCreated)
	for key, value := range map[string]string{
		"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": id.texts[textName],
		corev1.LabelTopologyZone: id.texts[textZone],
	} {
		if _, ok := pod.Labels[key]; ok {
			pod.Labels[key] = value
		}
	}
	if pod.Spec.Hostname != "" {
		pod.Spec.Hostname = name
	}
}

// spec gives the pod its node and its token.
func (id *identity) spec(s *corev1.PodSpec) {
	s.NodeName = id.texts[textNode]
	if a := s.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range t.MatchFields { // binds a pod of a DaemonSet to its node
				f.Values[0] = id.texts[textNode]
			}
		}
	}
	token := tokenPrefix + id.texts[textToken]
	for i := range s.Volumes {
		if strings.HasPrefix(s.Volumes[i].Name, tokenPrefix) {
			s.Volumes[i].Name = token
		}
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for _, c := range list {
			rename := func(name *string) {
				if strings.HasPrefix(*name, tokenPrefix) {
					*name = token
				}
			}
			for i := range c.VolumeMounts {
				rename(&c.VolumeMounts[i].Name)
			}
		}
	}
}

// status gives the pod its addresses, container ids and times.
func (id *identity) status(s *corev1.PodStatus) {
	s.HostIP, s.PodIP = id.texts[textHostIP], id.texts[textIP]
	s.HostIPs, s.PodIPs = []corev1.HostIP{{IP: s.HostIP}}, []corev1.PodIP{{IP: s.PodIP}}
	*s.StartTime = id.time(timeScheduled)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastTransitionTime = id.time(transitions[c.Type])
	}
	for i := range s.InitContainerStatuses {
		id.container(&s.InitContainerStatuses[i], i, timeInitStarted, timeInitDone)
	}
	for i := range s.ContainerStatuses {
		id.container(&s.ContainerStatuses[i], len(s.InitContainerStatuses)+i, timeStarted, timeReady)
	}
}

var transitions = map[corev1.PodConditionType]moment{
	corev1.PodReadyToStartContainers: timeInitStarted, corev1.PodInitialized: timeInitDone, corev1.PodReady: timeReady,
	corev1.ContainersReady: timeReady, corev1.PodScheduled: timeScheduled,
}

// container gives the n-th container of the pod its ids and times.
func (id *identity) container(s *corev1.ContainerStatus, n int, from, to moment) {
	const runtime = "containerd://"
	s.ContainerID = runtime + id.texts[textContainer+text(n)]
	for i := range s.VolumeMounts {
		if strings.HasPrefix(s.VolumeMounts[i].Name, tokenPrefix) {
			s.VolumeMounts[i].Name = tokenPrefix + id.texts[textToken]
		}
	}
	if r := s.State.Running; r != nil {
		r.StartedAt = id.time(from)
	}
	if t := s.State.Terminated; t != nil {
		t.ContainerID, t.StartedAt, t.FinishedAt = s.ContainerID, id.time(from), id.time(to)
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		t.ContainerID, t.StartedAt, t.FinishedAt = runtime+id.texts[textPrevious], id.time(timePreviousStarted), id.time(timePreviousEnded)
	}
}

func (id *identity) time(m moment) metav1.Time {
	return metav1.NewTime(time.Unix(id.times[m], 0).UTC())
}
