package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Labels and their values. Flipping the tier makes an object enter or leave a selection.
const (
	tierLabel = "tier"
	appLabel  = "app.kubernetes.io/name"
	gold      = "gold"
	apps      = 24
)

var (
	tiers  = []string{gold, "silver"}
	phases = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}
)

// hand is one writer with its own random numbers.
type hand struct {
	*world
	rng *rand.Rand
}

// create makes an object.
func (h *hand) create(ctx context.Context, o object) error {
	n := h.ledger.begin(o)
	body, err := json.Marshal(h.fresh(o, n))
	if err != nil {
		return fmt.Errorf("encode %v: %w", o, err)
	}
	answer, err := h.send(ctx, "POST", path(o, ""), "", body)
	h.ledger.answered(n, answer, err)
	return err
}

// patch merges JSON into an object or its subresource; $write is replaced by the write's number.
func (h *hand) patch(ctx context.Context, o object, subresource, merge string) error {
	n := h.ledger.begin(o)
	merge = strings.ReplaceAll(merge, "$write", strconv.Itoa(n))
	at := path(o, o.Name)
	if subresource != "" {
		at += "/" + subresource
	}
	answer, err := h.send(ctx, "PATCH", at, string(types.MergePatchType), []byte(merge))
	h.ledger.answered(n, answer, err)
	return err
}

// delete deletes an object without a grace period.
func (h *hand) delete(ctx context.Context, o object) error {
	h.ledger.deleting(o)
	answer, err := h.send(ctx, "DELETE", path(o, o.Name), "", []byte(`{"gracePeriodSeconds":0}`))
	h.ledger.deleted(o, answer, err)
	return err
}

const annotate = `"annotations":{"` + writeAnnotation + `":"$write"}`

// touch changes only an annotation.
func (h *hand) touch(ctx context.Context, o object) error {
	return h.patch(ctx, o, "", `{"metadata":{`+annotate+`}}`)
}

// flip changes a label.
func (h *hand) flip(ctx context.Context, o object) error {
	tier := tiers[h.rng.IntN(len(tiers))]
	return h.patch(ctx, o, "", fmt.Sprintf(`{"metadata":{"labels":{"%s":"%s"},`, tierLabel, tier)+annotate+`}}`)
}

// status reports what a kubelet would.
func (h *hand) status(ctx context.Context, o object) error {
	if o.resource == "widgets" {
		return h.patch(ctx, o, "", fmt.Sprintf(`{"metadata":{`+annotate+`},"status":{"observed":%d,"ratio":%.3f,"write":$write}}`, h.rng.IntN(1e6), h.rng.Float64()))
	}
	ip := fmt.Sprintf("10.%d.%d.%d", h.rng.IntN(4), h.rng.IntN(8), h.rng.IntN(250))
	ready := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[h.rng.IntN(2)]
	s := corev1.PodStatus{
		Phase: phases[h.rng.IntN(len(phases))], HostIP: "192.0.2.10", PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		StartTime: &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time},
	}
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: ready, LastTransitionTime: *s.StartTime, Reason: "Soak"})
	}
	for _, c := range []string{"main", "proxy"} {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c, Image: "registry.example.com/" + c + ":1", ImageID: "sha256:" + h.hex(64), ContainerID: "containerd://" + h.hex(64),
			Ready: ready == corev1.ConditionTrue, RestartCount: h.rng.Int32N(5),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *s.StartTime}},
		})
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	return h.patch(ctx, o, "status", `{"metadata":{`+annotate+`},"status":`+string(text)+`}`)
}

func (h *hand) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[h.rng.IntN(16)]
	}
	return string(b)
}

// fresh is a new object, made by a write.
func (h *hand) fresh(o object, write int) any {
	app := fmt.Sprintf("app-%02d", h.rng.IntN(apps))
	meta := metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name,
		Labels: map[string]string{appLabel: app, tierLabel: tiers[h.rng.IntN(len(tiers))], "pod-template-hash": h.hex(10)},
		Annotations: map[string]string{
			writeAnnotation: strconv.Itoa(write), "soak.tattler.dev/checksum": h.hex(64), "prometheus.io/scrape": "true",
		},
	}
	if o.resource == "widgets" {
		return map[string]any{
			"apiVersion": "soak.tattler.dev/v1", "kind": "Widget", "metadata": meta,
			"spec": map[string]any{
				"app": app, "replicas": h.rng.IntN(10), "big": int64(1) << 60, "ratio": h.rng.Float64(), "none": map[string]any{},
				"tags": []string{h.hex(8), "ünïcode <&> \u2028"}, "nested": map[string]any{"list": []any{1, "two", nil, 3.5, true}},
			},
		}
	}
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta, Spec: h.podSpec(app)}
}

func (h *hand) podSpec(app string) corev1.PodSpec {
	spec := corev1.PodSpec{
		NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
	for _, name := range []string{"main", "proxy"} {
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
		c := corev1.Container{
			Name: name, Image: "registry.example.com/" + app + "/" + name + ":" + h.hex(12), Command: []string{"/bin/" + name, "--serve"},
			Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			ReadinessProbe: probe, LivenessProbe: probe,
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1.5Gi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/" + app}, {Name: "scratch", MountPath: "/tmp"}},
		}
		if name == "proxy" {
			c.Ports = nil
		}
		for i := range 12 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("%s_SETTING_%d", strings.ToUpper(name), i), Value: h.hex(8 + i)})
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}})
		spec.Containers = append(spec.Containers, c)
	}
	return spec
}
