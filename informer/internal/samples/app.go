package samples

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// App is one application: the common parts of its pods.
type App struct {
	ns, name, kind string
	owner          metav1.OwnerReference
	generate       string
	template       corev1.PodTemplateSpec
	imageIDs       []string
	calico         bool
	fields         [2]string // managed by the controller manager, and by the kubelet of a pod with noIP
}

// App makes application number i.
func (g *Gen) App(i int) *App {
	a := &App{
		ns: fmt.Sprintf("%s-%s", words[i%37], g.pick("prod", "prod", "staging", "team")), name: fmt.Sprintf("%s-%d", g.name(2), i),
		kind: g.pick("ReplicaSet", "ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet"), calico: i%3 == 0,
	}
	g.Rollout(a)
	return a
}

// Rollout gives the application a new template.
func (g *Gen) Rollout(a *App) {
	hash := g.Suffix(10)
	ownerName, api := a.name, "apps/v1"
	if a.kind == "ReplicaSet" {
		ownerName += "-" + hash
	}
	yes := true
	a.owner = metav1.OwnerReference{APIVersion: api, Kind: a.kind, Name: ownerName, UID: g.uid(), Controller: &yes, BlockOwnerDeletion: &yes}
	a.generate = ownerName + "-"
	a.fields = [2]string{}
	a.template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: g.labels(a, hash), Annotations: g.annotations()}, Spec: g.spec(a)}
	a.imageIDs = nil
	for range a.template.Spec.Containers {
		a.imageIDs = append(a.imageIDs, "sha256:"+g.hex(64))
	}
	for range a.template.Spec.InitContainers {
		a.imageIDs = append(a.imageIDs, "sha256:"+g.hex(64))
	}
}

func (g *Gen) labels(a *App, hash string) map[string]string {
	l := map[string]string{"app.kubernetes.io/name": a.name, "app.kubernetes.io/instance": a.name + "-" + g.word(), "team": g.word()}
	if a.kind == "ReplicaSet" {
		l["pod-template-hash"] = hash
	} else {
		l["controller-revision-hash"] = a.name + "-" + hash
	}
	g.maybe(l, 50, "app.kubernetes.io/version", fmt.Sprintf("%d.%d.%d", g.IntN(9), g.IntN(40), g.IntN(20)), "app.kubernetes.io/component", g.word(),
		"app.kubernetes.io/part-of", g.name(2), "app.kubernetes.io/managed-by", "Helm", "helm.sh/chart", g.name(2)+"-1.4.2",
		"tier", g.word(), "cost-center", fmt.Sprint(g.IntN(9000)))
	return l
}

// maybe adds each pair with the given probability.
func (g *Gen) maybe(to map[string]string, percent int, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if g.chance(percent) {
			to[pairs[i]] = pairs[i+1]
		}
	}
}

func (g *Gen) annotations() map[string]string {
	a := map[string]string{"checksum/config": g.hex(64)}
	g.maybe(a, 40, "prometheus.io/scrape", "true", "prometheus.io/port", fmt.Sprint(g.between(8000, 9999)), "checksum/secret", g.hex(64),
		"kubectl.kubernetes.io/restartedAt", "2026-11-02T10:11:12Z", "cluster-autoscaler.kubernetes.io/safe-to-evict", "true",
		"kubectl.kubernetes.io/default-container", g.word(), "sidecar.istio.io/status",
		`{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket","istio-envoy","istio-data"],"revision":"`+g.word()+`"}`)
	return a
}

func (g *Gen) spec(a *App) corev1.PodSpec {
	grace, prio := int64(g.between(1, 4)*15), int32(g.IntN(3)*1000)
	account := a.name
	s := corev1.PodSpec{
		RestartPolicy: "Always", TerminationGracePeriodSeconds: &grace, DNSPolicy: "ClusterFirst", ServiceAccountName: account,
		DeprecatedServiceAccount: account, SchedulerName: "default-scheduler", Priority: &prio, SecurityContext: &corev1.PodSecurityContext{},
		EnableServiceLinks: new(bool), PreemptionPolicy: new(corev1.PreemptionPolicy),
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64)},
			{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64)},
		},
	}
	*s.PreemptionPolicy = "PreemptLowerPriority"
	*s.Tolerations[0].TolerationSeconds, *s.Tolerations[1].TolerationSeconds = 300, 300
	for range g.IntN(3) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: g.name(2), VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: a.name + "-" + g.word()}, DefaultMode: new(int32)}}})
	}
	if g.chance(50) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: g.word(), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	if g.chance(40) {
		s.NodeSelector = map[string]string{"kubernetes.io/os": "linux", "pool": g.word()}
	}
	if g.chance(40) {
		sel := &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": a.name}}
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: sel}}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: sel, TopologyKey: "kubernetes.io/hostname"}}}}}
	}
	n := 1 + []int{0, 0, 0, 0, 0, 0, 0, 1, 2, 3}[g.IntN(10)]
	envs := g.between(8, 14)
	for i := range n {
		name := a.name
		if i > 0 {
			name = g.pick("istio-proxy", "log-shipper", "metrics", "vault-agent") + fmt.Sprint(i)
		}
		s.Containers = append(s.Containers, g.container(name, envs, s.Volumes))
		envs = g.between(1, 4)
	}
	if g.chance(25) {
		s.InitContainers = append(s.InitContainers, g.container("init-"+g.word(), 2, s.Volumes))
	}
	return s
}

func (g *Gen) container(name string, envs int, volumes []corev1.Volume) corev1.Container {
	c := corev1.Container{
		Name: name, Image: fmt.Sprintf("registry.example.com/%s/%s:%d.%d.%d", g.word(), g.name(2), g.IntN(9), g.IntN(40), g.IntN(30)),
		Ports:                    []corev1.ContainerPort{{Name: "http", ContainerPort: int32(g.between(3000, 9999)), Protocol: "TCP"}},
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": g.quantity(fmt.Sprintf("%dm", g.between(1, 40)*25)), "memory": g.quantity(fmt.Sprintf("%dMi", g.between(1, 60)*32))},
			Limits:   corev1.ResourceList{"memory": g.quantity(fmt.Sprintf("%dMi", g.between(1, 60)*64))},
		},
	}
	for range g.IntN(4) {
		c.Args = append(c.Args, fmt.Sprintf("--%s=%s", g.name(2), g.name(1)))
	}
	for range envs {
		e := corev1.EnvVar{Name: g.upper(g.between(1, 3))}
		switch g.IntN(8) {
		case 0:
			e.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: g.name(2)}, Key: g.word()}}
		case 1:
			e.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: g.pick("status.podIP", "metadata.name", "metadata.namespace")}}
		case 2:
			e.Value = fmt.Sprintf("https://%s.%s.svc.cluster.local:%d/%s", g.name(2), g.word(), g.between(1000, 9999), g.word())
		case 3:
			e.Value = fmt.Sprint(g.IntN(100_000))
		default:
			e.Value = g.name(g.between(1, 3))
		}
		c.Env = append(c.Env, e)
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: "HTTP"}},
			InitialDelaySeconds: int32(g.IntN(60)), TimeoutSeconds: int32(g.between(1, 5)), PeriodSeconds: int32(g.between(5, 30)), SuccessThreshold: 1, FailureThreshold: 3}
	}
	if g.chance(50) {
		c.LivenessProbe, c.ReadinessProbe = probe("/"+g.word()), probe("/"+g.word())
	}
	if g.chance(40) {
		no := false
		c.SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
	for _, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/etc/" + g.name(2)})
	}
	return c
}
