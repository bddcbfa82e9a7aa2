package compare_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tattler-dev/tattler/informer/internal/compare"
)

func pod() *corev1.Pod {
	seconds := int64(30)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Labels: map[string]string{"app": "web", "tier": "front"}, CreationTimestamp: metav1.Unix(1700000000, 0),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)}},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &seconds,
			Containers: []corev1.Container{{
				Name: "main", Image: "web:1",
				Resources:     corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.5")}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
			}},
		},
	}
}

func TestTyped(t *testing.T) {
	for _, tc := range []struct {
		why   string
		write func(*corev1.Pod)
		want  string
	}{
		{"nothing", func(*corev1.Pod) {}, ""},
		{"a label", func(p *corev1.Pod) { p.Labels["app"] = "shop" }, `metadata.labels["app"]: "web", "shop"`},
		{"a new label", func(p *corev1.Pod) { p.Labels["aaa"] = "b" }, `metadata.labels["aaa"]: nothing, "b"`},
		{"a removed label", func(p *corev1.Pod) { delete(p.Labels, "tier") }, `metadata.labels["tier"]: "front", nothing`},
		{"of several keys the first in order", func(p *corev1.Pod) { p.Labels["z"], p.Labels["b"], p.Labels["tier"] = "", "", "" }, `metadata.labels["b"]: nothing, ""`},
		{"a nil map equals an empty one", func(p *corev1.Pod) { p.Annotations = map[string]string{} }, ""},
		{"a nil list equals an empty one", func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{} }, ""},
		{"a field of an inlined struct", func(p *corev1.Pod) { p.Kind = "Pod" }, `kind: "", "Pod"`},
		{"an element", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }, `spec.containers[0].image: "web:1", "web:2"`},
		{"the target of a pointer", func(p *corev1.Pod) { *p.Spec.TerminationGracePeriodSeconds = 5 }, `spec.terminationGracePeriodSeconds: 30, 5`},
		{"a removed pointer", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }, `spec.terminationGracePeriodSeconds: 30, nothing`},
		{"deep inside", func(p *corev1.Pod) { p.Spec.Containers[0].LivenessProbe.HTTPGet.Port.IntVal = 81 }, `spec.containers[0].livenessProbe.httpGet.port.IntVal: 80, 81`},
		{"a longer list", func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "x") }, `metadata.finalizers[0]: nothing, "x"`},
		{"a shorter list", func(p *corev1.Pod) { p.Spec.Containers = nil }, `spec.containers[0]: {Name:main`},
		{"a quantity", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
		}, `spec.containers[0].resources.limits["cpu"]: 500m, 2`},
		{"the same quantity", func(p *corev1.Pod) {
			q := resource.MustParse("500m")
			_, _ = q.AsDec(), q.String()
			p.Spec.Containers[0].Resources.Limits["cpu"] = q
		}, ""},
		{"a time", func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(1700000001, 0) }, `metadata.creationTimestamp: `},
		{"the same time in another zone", func(p *corev1.Pod) { p.CreationTimestamp.Time = p.CreationTimestamp.In(time.FixedZone("x", 3600)) }, ""},
		{"bytes", func(p *corev1.Pod) { p.ManagedFields[0].FieldsV1.SetRawString(`{"f:spec":{}}`) }, `metadata.managedFields[0].fieldsV1.Raw: "{\"f:status\":{}}", "{\"f:spec\":{}}"`},
		{"a long text is cut", func(p *corev1.Pod) { p.Name = strings.Repeat("ö", 100) }, `metadata.name: "web", "` + strings.Repeat("ö", 39) + "…"},
	} {
		want, got := pod(), pod()
		tc.write(got)
		check(t, tc.why, want, got, tc.want)
	}
}

func check(t *testing.T, why string, want, got any, text string) {
	t.Helper()
	d, differ := compare.First(want, got)
	have := ""
	if differ {
		have = fmt.Sprintf("%s: %s, %s", d.Path, d.Want, d.Got)
	}
	if differ != (text != "") || !strings.HasPrefix(have, text) {
		t.Errorf("%s: %q, want %q", why, have, text)
	}
}

func TestUnstructured(t *testing.T) {
	make1 := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "w", "labels": map[string]any{"example.com/app": "web"}},
			"spec":     map[string]any{"n": int64(1), "f": math.NaN(), "list": []any{"a", map[string]any{"b": nil}}},
		}}
	}
	for _, tc := range []struct {
		why   string
		write func(map[string]any)
		want  string
	}{
		{"nothing", func(map[string]any) {}, ""},
		{"a number", func(o map[string]any) { o["spec"].(map[string]any)["n"] = int64(2) }, "object.spec.n: 1, 2"},
		{"its type", func(o map[string]any) { o["spec"].(map[string]any)["n"] = 1.0 }, "object.spec.n: 1, 1"},
		{"a key that is not a field's name", func(o map[string]any) {
			o["metadata"].(map[string]any)["labels"].(map[string]any)["example.com/app"] = "x"
		}, `object.metadata.labels["example.com/app"]: "web", "x"`},
		{"null", func(o map[string]any) { o["spec"].(map[string]any)["list"].([]any)[1].(map[string]any)["b"] = true }, `object.spec.list[1].b: nothing, true`},
		{"all", func(o map[string]any) { clear(o) }, "object.metadata: map["},
	} {
		want, got := make1(), make1()
		tc.write(got.Object)
		check(t, tc.why, want, got, strings.TrimPrefix(tc.want, "object."))
	}
}

type odd struct {
	metav1.TypeMeta
	Self *odd
	F    func()
	C    chan int
	B    [2]byte
	K    map[int]bool
	lazy string
}

// TestOdd: constructs that only users' own types have.
func TestOdd(t *testing.T) {
	a, b := &odd{lazy: "a", F: func() {}}, &odd{C: make(chan int)}
	check(t, "what cannot be compared", a, b, "")
	a.Self, b.Self = a, b
	check(t, "what contains itself", a, b, "")
	b.B[1] = 2
	check(t, "an array", a, b, "Self.Self.")
	a.Self, b.Self = nil, nil
	check(t, "an array", a, b, "B: [0 0], [0 2]")
	b.B[1], b.K = 0, map[int]bool{3: true}
	check(t, "a map by number", a, b, "K[3]: nothing, true")
	check(t, "another type", a, pod(), ".: ")
	check(t, "no object", nil, nil, "")
}

func BenchmarkFirst(b *testing.B) {
	x, y := pod(), pod()
	for b.Loop() {
		if _, differ := compare.First(x, y); differ {
			b.Fatal("they differ")
		}
	}
}
