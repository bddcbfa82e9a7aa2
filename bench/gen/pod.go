package gen

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// tokenPath is where the API server mounts a pod's service account.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

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
	id := g.identify(i, 0)
	return g.create(&id)
}

func (g *Generator) create(id *identity) *corev1.Pod {
	a := g.apps[id.app]
	p := a.places[id.place]
	pod := &corev1.Pod{Spec: *a.spec.DeepCopy()}
	pod.Namespace, pod.Name = p.namespace, g.name(id)
	pod.Labels, pod.Annotations = map[string]string{}, map[string]string{}
	for k, v := range a.labels {
		pod.Labels[k] = v
	}
	for k, v := range a.annotations {
		pod.Annotations[k] = v
	}
	if len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: a.kind, Name: p.owner, UID: p.ownerUID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
	pod.GenerateName = p.owner + "-"
	switch a.kind {
	case "ReplicaSet":
		pod.Labels["pod-template-hash"] = p.hash
	case "StatefulSet":
		pod.GenerateName = ""
		pod.Labels["controller-revision-hash"] = p.owner + "-" + p.hash
		pod.Labels["statefulset.kubernetes.io/pod-name"] = pod.Name
		pod.Labels["apps.kubernetes.io/pod-index"] = id.texts[textName]
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, a.name
	case "DaemonSet":
		pod.Labels["controller-revision-hash"] = p.hash
		pod.Labels["pod-template-generation"] = "7"
		pod.Spec.Affinity = nodeAffinity(id.texts[textNode])
	case "Job":
		owner.APIVersion = "batch/v1"
		for _, prefix := range []string{"", "batch.kubernetes.io/"} {
			pod.Labels[prefix+"controller-uid"] = string(p.ownerUID)
			pod.Labels[prefix+"job-name"] = p.owner
		}
		pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	return pod
}

// nodeAffinity binds a pod of a DaemonSet to its node.
func nodeAffinity(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}}}
}

// complete returns the pod as the API server stores it.
func (g *Generator) complete(id *identity) *corev1.Pod {
	pod := g.create(id)
	admit(pod, id)
	bind(pod, id)
	pod.Status = g.status(id, pod)
	f := g.fieldsOf(id)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", f.created, id, timeCreated),
		entry("kubelet", "status", f.reported, id, timeReported),
	}
	if pod.Finalizers != nil && id.state == succeeded { // the controller counted it
		pod.Finalizers = nil
	}
	return pod
}

// admit adds the API server's additions to a new pod.
func admit(pod *corev1.Pod, id *identity) {
	pod.UID = types.UID(id.texts[textUID])
	pod.ResourceVersion = id.texts[textVersion]
	pod.Generation = 1
	pod.CreationTimestamp = id.time(timeCreated)
	s := &pod.Spec
	s.Priority, s.PreemptionPolicy = ptr.To(int32(0)), ptr.To(corev1.PreemptLowerPriority)
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		if !slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool { return t.Key == key }) {
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(300))})
		}
	}
	if s.AutomountServiceAccountToken == nil {
		mountToken(s, id)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(pod)}
}

// mountToken gives the containers the pod's service account.
func mountToken(s *corev1.PodSpec, id *identity) {
	token := "kube-api-access-" + id.texts[textToken]
	s.Volumes = append(s.Volumes, corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: tokenVolume()}})
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, corev1.VolumeMount{Name: token, ReadOnly: true, MountPath: tokenPath})
		}
	}
}

func tokenVolume() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{DefaultMode: ptr.To(int32(420)), Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr.To(int64(3607)), Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace",
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
	}}
}

// qosClass is Guaranteed if the requests of every container equal its limits, BestEffort without
// requests and limits, and Burstable otherwise.
func qosClass(pod *corev1.Pod) corev1.PodQOSClass {
	asks, bounded := false, true
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				req, lim := c.Resources.Requests[name], c.Resources.Limits[name]
				asks = asks || !req.IsZero() || !lim.IsZero()
				bounded = bounded && !lim.IsZero() && req.Cmp(lim) == 0
			}
		}
	}
	switch {
	case !asks:
		return corev1.PodQOSBestEffort
	case bounded:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// bind adds the effect of the scheduler's binding.
func bind(pod *corev1.Pod, id *identity) {
	pod.Spec.NodeName = id.texts[textNode]
	pod.Labels["topology.kubernetes.io/region"] = region
	pod.Labels["topology.kubernetes.io/zone"] = id.texts[textZone]
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: id.time(timeScheduled)}}
}

func (id *identity) time(m moment) metav1.Time {
	return metav1.NewTime(time.Unix(id.times[m], 0).UTC())
}

// repository is the name of an image without its tag.
func repository(image string) string {
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i]
	}
	return image
}
