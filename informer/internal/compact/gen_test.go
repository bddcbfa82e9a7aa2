package compact

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// item is an object as a list or watch hands it to the store.
type item struct {
	f       wire.Format
	key     string // namespace/name
	uid, rv string
	raw     []byte
}

// object is what the API's types have in common.
type object interface {
	metav1.Object
	Marshal() ([]byte, error)
}

func encode(f wire.Format, o object) item {
	it := item{f: f, key: o.GetNamespace() + "/" + o.GetName(), uid: string(o.GetUID()), rv: o.GetResourceVersion()}
	var err error
	if f == wire.Protobuf {
		it.raw, err = o.Marshal()
	} else {
		it.raw, err = json.Marshal(o)
	}
	if err != nil {
		panic(err)
	}
	return it
}

// gen makes objects such as a busy cluster has, the same ones for the same seed.
type gen struct {
	*rand.Rand
	rv int
}

func newGen(seed uint64) *gen { return &gen{Rand: rand.New(rand.NewPCG(seed, 7)), rv: 48_213_377} }

var words = strings.Fields(`api auth batch billing cache cart catalog checkout client cluster config consumer core
	customer data dispatch edge email event export feed fraud gateway geo graph help identity import index ingest
	inventory invoice job kafka ledger limit loader logger mail match media message metric monitor notify order
	partner pay pipeline planner portal price profile proxy queue rate recommend refund relay report review risk
	router rules scan schedule score search secret server session ship sink stock store stream sync tax token
	tracker trade upload user vault video wallet web worker zone`)

func (g *gen) word() string               { return words[g.IntN(len(words))] }
func (g *gen) between(lo, hi int) int     { return lo + g.IntN(hi-lo+1) }
func (g *gen) chance(percent int) bool    { return g.IntN(100) < percent }
func (g *gen) name(n int) string          { return strings.Join(g.some(n), "-") }
func (g *gen) upper(n int) string         { return strings.ToUpper(strings.Join(g.some(n), "_")) }
func (g *gen) pick(from ...string) string { return from[g.IntN(len(from))] }
func (g *gen) ip() string                 { return fmt.Sprintf("10.%d.%d.%d", g.IntN(256), g.IntN(256), g.IntN(256)) }
func (g *gen) nextRV() string             { g.rv += g.between(1, 900); return fmt.Sprint(g.rv) }
func (g *gen) time() metav1.Time {
	return metav1.NewTime(time.Unix(1_790_000_000+g.Int64N(3_000_000), 0).UTC())
}
func (g *gen) quantity(s string) resource.Quantity { return resource.MustParse(s) }

func (g *gen) some(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = g.word()
	}
	return out
}

func (g *gen) hex(n int) string {
	b := make([]byte, n/2)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return hex.EncodeToString(b)
}

func (g *gen) uid() types.UID {
	h := g.hex(32)
	return types.UID(h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:])
}

// suffix is what generateName appends.
func (g *gen) suffix(n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[g.IntN(len(letters))]
	}
	return string(b)
}

// app is one application: what its pods have in common.
type app struct {
	ns, name, kind string
	owner          metav1.OwnerReference
	generate       string
	template       corev1.PodTemplateSpec
	imageIDs       []string
	calico         bool
	fields         [2]string // managed by the controller manager, and by the kubelet of a pod with noIP
}

func (g *gen) app(i int) *app {
	a := &app{
		ns: fmt.Sprintf("%s-%s", words[i%37], g.pick("prod", "prod", "staging", "team")), name: fmt.Sprintf("%s-%d", g.name(2), i),
		kind: g.pick("ReplicaSet", "ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet"), calico: i%3 == 0,
	}
	g.rollout(a)
	return a
}

// rollout gives the application a new template.
func (g *gen) rollout(a *app) {
	hash := g.suffix(10)
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

func (g *gen) labels(a *app, hash string) map[string]string {
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

// maybe adds some of the pairs.
func (g *gen) maybe(to map[string]string, percent int, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if g.chance(percent) {
			to[pairs[i]] = pairs[i+1]
		}
	}
}

func (g *gen) annotations() map[string]string {
	a := map[string]string{"checksum/config": g.hex(64)}
	g.maybe(a, 40, "prometheus.io/scrape", "true", "prometheus.io/port", fmt.Sprint(g.between(8000, 9999)), "checksum/secret", g.hex(64),
		"kubectl.kubernetes.io/restartedAt", "2026-11-02T10:11:12Z", "cluster-autoscaler.kubernetes.io/safe-to-evict", "true",
		"kubectl.kubernetes.io/default-container", g.word(), "sidecar.istio.io/status",
		`{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket","istio-envoy","istio-data"],"revision":"`+g.word()+`"}`)
	return a
}

func (g *gen) spec(a *app) corev1.PodSpec {
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

func (g *gen) container(name string, envs int, volumes []corev1.Volume) corev1.Container {
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

// pod is one pod of the application, running.
func (g *gen) pod(a *app, ordinal int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *a.template.ObjectMeta.DeepCopy(), Spec: *a.template.Spec.DeepCopy()}
	p.Name = a.generate + g.suffix(5)
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
	token := "kube-api-access-" + g.suffix(5)
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

func (g *gen) status(a *app, p *corev1.Pod, ip, hostIP string) corev1.PodStatus {
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

// managed is what the controller manager and the kubelet leave in metadata.managedFields.
func managed(a *app, p *corev1.Pod, ip string) []metav1.ManagedFieldsEntry {
	if a.fields[0] == "" {
		a.fields = fieldsOf(a, p)
	}
	entry := func(manager, sub string, at metav1.Time, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: sub}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", p.CreationTimestamp, a.fields[0]),
		entry("kubelet", "status", p.Status.ContainerStatuses[0].State.Running.StartedAt, strings.ReplaceAll(a.fields[1], noIP, ip)),
	}
}

const noIP = "0.0.0.0"

func fieldsOf(a *app, p *corev1.Pod) [2]string {
	leaf := map[string]any{}
	node := func(names ...string) map[string]any {
		m := map[string]any{".": leaf}
		for _, n := range names {
			m["f:"+n] = leaf
		}
		return m
	}
	meta := map[string]any{"f:generateName": leaf, "f:ownerReferences": map[string]any{".": leaf, fmt.Sprintf(`k:{"uid":%q}`, a.owner.UID): leaf}}
	l, n := node(), node()
	for k := range p.Labels {
		l["f:"+k] = leaf
	}
	for k := range p.Annotations {
		n["f:"+k] = leaf
	}
	meta["f:labels"], meta["f:annotations"] = l, n
	containers := map[string]any{}
	for _, c := range p.Spec.Containers {
		m := node("image", "imagePullPolicy", "name", "resources", "terminationMessagePath", "terminationMessagePolicy")
		env := node()
		for _, e := range c.Env {
			env[fmt.Sprintf(`k:{"name":%q}`, e.Name)] = node("name", "value")
		}
		m["f:env"] = env
		m["f:resources"] = map[string]any{".": leaf, "f:limits": node("memory"), "f:requests": node("cpu", "memory")}
		m["f:ports"] = map[string]any{".": leaf, fmt.Sprintf(`k:{"containerPort":%d,"protocol":"TCP"}`, c.Ports[0].ContainerPort): node("containerPort", "name", "protocol")}
		if c.LivenessProbe != nil {
			probe := node("failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds")
			probe["f:httpGet"] = node("path", "port", "scheme")
			m["f:livenessProbe"], m["f:readinessProbe"] = probe, probe
		}
		containers[fmt.Sprintf(`k:{"name":%q}`, c.Name)] = m
	}
	spec := map[string]any{"f:containers": containers}
	for _, f := range []string{"dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "terminationGracePeriodSeconds"} {
		spec["f:"+f] = leaf
	}
	conditions := map[string]any{}
	for _, c := range p.Status.Conditions {
		conditions[fmt.Sprintf(`k:{"type":%q}`, c.Type)] = node("lastProbeTime", "lastTransitionTime", "observedGeneration", "status", "type")
	}
	status := map[string]any{"f:conditions": conditions, "f:podIPs": map[string]any{".": leaf, fmt.Sprintf(`k:{"ip":%q}`, noIP): node("ip")}}
	for _, f := range []string{"containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "startTime"} {
		status["f:"+f] = leaf
	}
	return [2]string{asJSON(map[string]any{"f:metadata": meta, "f:spec": spec}), asJSON(map[string]any{"f:status": status})}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
