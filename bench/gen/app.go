package gen

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// Apps is the number of applications of New.
	Apps = 200
	// places is the number of revisions, namespaces and jobs of an application.
	places = 3
)

// app is one application: the parts that its pods share.
type app struct {
	name                string
	kind                string // of the pods' owner
	places              [places]place
	labels, annotations map[string]string
	// spec is the owner's template with the API server's defaults.
	spec corev1.PodSpec
	// users means that the container runtime reports the containers' users.
	users bool
	// digests has the images' digests in the registry, by image.
	digests map[string]string
}

// place is one revision of an application in one namespace.
type place struct {
	namespace, owner, hash string
	ownerUID               types.UID
}

// newApp generates the i-th application.
func newApp(seed uint64, i int) *app {
	r := newRandom(seed, saltApp+uint64(i))
	a := &app{kind: kindOf(r), digests: map[string]string{}}
	a.name = fmt.Sprintf("%s-%s", areas[i%len(areas)], roles[(i/len(areas)*7+i)%len(roles)])
	if i >= Apps {
		a.name += fmt.Sprint("-", i/Apps)
	}
	if a.kind == "Job" {
		a.name += "-" + pick(r, "nightly", "hourly", "sync", "cleanup")
	}
	a.place(r)
	a.metadata(r)
	a.pod(r)
	a.users = r.chance(30)
	for _, list := range [][]corev1.Container{a.spec.InitContainers, a.spec.Containers} {
		for _, c := range list {
			a.digests[c.Image] = "sha256:" + r.hex(64)
		}
	}
	return a
}

func kindOf(r random) string {
	switch n := r.IntN(100); {
	case n < 66:
		return "ReplicaSet"
	case n < 81:
		return "StatefulSet"
	case n < 91:
		return "DaemonSet"
	default:
		return "Job"
	}
}

func (a *app) place(r random) {
	first, second := r.IntN(Namespaces), r.IntN(Namespaces)
	for i := range a.places {
		p := &a.places[i]
		p.namespace = namespaceName(first)
		if i == 2 {
			p.namespace = namespaceName(second)
		}
		p.ownerUID = types.UID(r.uid())
		p.hash = r.string(letters, 10)
		switch a.kind {
		case "ReplicaSet":
			p.owner = a.name + "-" + p.hash
		case "Job":
			p.owner = fmt.Sprintf("%s-%d", a.name, 29_300_000+r.IntN(90_000))
		default: // owners of one name must be in different namespaces
			p.owner = fmt.Sprintf("%s-%s", a.name, pick(r, "a", "b", "main", "eu", "blue", "x")+fmt.Sprint(i))
		}
	}
}

// metadata draws the application's labels and annotations.
func (a *app) metadata(r random) {
	a.labels, a.annotations = map[string]string{}, map[string]string{}
	version := fmt.Sprintf("%d.%d.%d", r.IntN(9), r.IntN(30), r.IntN(20))
	area, role, _ := strings.Cut(a.name, "-")
	if r.chance(55) {
		maps.Copy(a.labels, map[string]string{
			"app.kubernetes.io/name":      a.name,
			"app.kubernetes.io/instance":  pick(r, a.name, area, area+"-prod"),
			"app.kubernetes.io/component": role,
		})
		if r.chance(40) {
			a.labels["app.kubernetes.io/version"] = version
			a.labels["app.kubernetes.io/managed-by"] = pick(r, "Helm", "argocd", "Kustomize")
			a.labels["app.kubernetes.io/part-of"] = area
		}
		if r.chance(25) {
			a.labels["helm.sh/chart"] = a.name + "-" + version
		}
	} else {
		a.labels[pick(r, "app", "k8s-app", "app", "name")] = a.name
		a.labels["release"] = pick(r, area, "stable", "canary")
	}
	for _, l := range []struct{ key, value string }{
		{"team", pick(r, teams...)}, {"tier", pick(r, "frontend", "backend", "data", "edge")},
		{"env", pick(r, "production", "prod", "staging")}, {"cost-center", fmt.Sprintf("cc-%04d", r.IntN(9000))},
		{"sidecar.istio.io/inject", "true"}, {"track", "stable"}, {"version", "v" + version},
	} {
		if r.chance(18) {
			a.labels[l.key] = l.value
		}
	}
	for _, l := range []struct {
		key, value string
		p          int
	}{
		{"prometheus.io/scrape", "true", 25}, {"prometheus.io/port", pick(r, "9090", "8080", "9102"), 25},
		{"prometheus.io/path", "/metrics", 12}, {"checksum/config", r.hex(64), 25}, {"checksum/secret", r.hex(64), 10},
		{"kubectl.kubernetes.io/restartedAt", "2026-10-" + fmt.Sprint(r.between(10, 30)) + "T09:12:44+02:00", 20},
		{"cluster-autoscaler.kubernetes.io/safe-to-evict", "true", 20},
		{"kubectl.kubernetes.io/default-container", "app", 20},
		{"vault.hashicorp.com/agent-inject", "true", 10},
		{"vault.hashicorp.com/role", a.name, 10},
		{"ad.datadoghq.com/app.logs", fmt.Sprintf(`[{"source":"go","service":%q,"log_processing_rules":[{"type":"multi_line","name":"stack","pattern":"^\\d{4}-"}]}]`, a.name), 12},
	} {
		if r.chance(l.p) {
			a.annotations[l.key] = l.value
		}
	}
}

// pod draws the rest of the pods' specification.
func (a *app) pod(r random) {
	s := &a.spec
	s.RestartPolicy = corev1.RestartPolicyAlways
	s.TerminationGracePeriodSeconds = ptr.To(int64(pick(r, 30, 30, 30, 60, 120, 10)))
	s.DNSPolicy = corev1.DNSClusterFirst
	s.ServiceAccountName = pick(r, a.name, a.name, "default")
	s.DeprecatedServiceAccount = s.ServiceAccountName
	s.SecurityContext = podSecurity(r)
	s.SchedulerName = corev1.DefaultSchedulerName
	s.EnableServiceLinks = ptr.To(r.chance(70))
	if r.chance(40) {
		s.AutomountServiceAccountToken = ptr.To(false)
	}
	if r.chance(25) {
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pick(r, "registry", "regcred", "ghcr-pull")}}
	}
	a.volumes(r)
	a.containers(r)
	a.scheduling(r)
	switch a.kind {
	case "Job":
		s.RestartPolicy = pick(r, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)
	case "DaemonSet":
		s.Tolerations = append(s.Tolerations, daemonTolerations()...)
		s.HostNetwork, s.HostPID = false, r.chance(20)
	}
}

func podSecurity(r random) *corev1.PodSecurityContext {
	c := &corev1.PodSecurityContext{}
	if r.chance(40) {
		c.RunAsNonRoot = ptr.To(true)
		c.RunAsUser = ptr.To(int64(pick(r, 1000, 65532, 10001, 472, 999)))
	}
	if r.chance(25) {
		c.FSGroup = ptr.To(int64(pick(r, 1000, 65532, 2000, 999)))
		if r.chance(40) {
			c.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
		}
	}
	if r.chance(30) {
		c.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return c
}

func (a *app) scheduling(r random) {
	s := &a.spec
	match := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, k := range []string{"app.kubernetes.io/name", "app", "k8s-app", "name", "release"} {
		if v, ok := a.labels[k]; ok {
			match.MatchLabels[k] = v
		}
	}
	if r.chance(15) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight:          int32(pick(r, 100, 50, 1)),
				PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: match, TopologyKey: "kubernetes.io/hostname"},
			}},
		}}
	}
	if r.chance(8) {
		if s.Affinity == nil {
			s.Affinity = &corev1.Affinity{}
		}
		s.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: pick(r, "node.kubernetes.io/instance-type", "kubernetes.io/arch", "topology.kubernetes.io/zone"), Operator: corev1.NodeSelectorOpIn,
				Values: pick(r, []string{"m6i.2xlarge", "m6i.4xlarge"}, []string{"amd64"}, []string{"eu-west-1a", "eu-west-1b"}),
			}}}},
		}}
	}
	if r.chance(8) {
		for _, key := range []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"} {
			s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: match,
			})
		}
	}
	if r.chance(15) {
		s.NodeSelector = map[string]string{pick(r, "kubernetes.io/os", "node-pool", "workload"): pick(r, "linux", "general", "batch")}
	}
	if r.chance(12) {
		s.Tolerations = []corev1.Toleration{{Key: pick(r, "dedicated", "spot", "gpu"), Operator: corev1.TolerationOpEqual,
			Value: pick(r, "batch", "true", "data"), Effect: corev1.TaintEffectNoSchedule}}
	}
}

// daemonTolerations are the tolerations that the controller adds to the pods of a DaemonSet.
func daemonTolerations() []corev1.Toleration {
	var list []corev1.Toleration
	for _, t := range []struct {
		key    string
		effect corev1.TaintEffect
	}{
		{"node.kubernetes.io/not-ready", corev1.TaintEffectNoExecute}, {"node.kubernetes.io/unreachable", corev1.TaintEffectNoExecute},
		{"node.kubernetes.io/disk-pressure", corev1.TaintEffectNoSchedule}, {"node.kubernetes.io/memory-pressure", corev1.TaintEffectNoSchedule},
		{"node.kubernetes.io/pid-pressure", corev1.TaintEffectNoSchedule}, {"node.kubernetes.io/unschedulable", corev1.TaintEffectNoSchedule},
	} {
		list = append(list, corev1.Toleration{Key: t.key, Operator: corev1.TolerationOpExists, Effect: t.effect})
	}
	return list
}
