package clientgo

import (
	"encoding/json"
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/samples"
)

// release is a typical custom resource: a pod template, some settings, conditions.
type release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              releaseSpec   `json:"spec,omitempty"`
	Status            releaseStatus `json:"status,omitempty"`
}

type releaseSpec struct {
	Replicas *int32                 `json:"replicas,omitempty"`
	Paused   bool                   `json:"paused,omitempty"`
	Selector *metav1.LabelSelector  `json:"selector,omitempty"`
	Template corev1.PodTemplateSpec `json:"template"`
	Settings map[string]string      `json:"settings,omitempty"`
	Extra    *runtime.RawExtension  `json:"extra,omitempty"`
}

type releaseStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (r *release) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	r.Spec.Template.DeepCopyInto(&c.Spec.Template)
	return &c
}

// releases returns the JSON of this many releases of each application.
func releases(t testing.TB, apps, each int) (all [][]byte) {
	g := samples.New(1)
	for i := range apps {
		a := g.App(i)
		for j := range each {
			p := g.Pod(a, j)
			r := &release{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Release"}, ObjectMeta: p.ObjectMeta}
			r.OwnerReferences = nil
			r.Spec = releaseSpec{
				Replicas: ptr(int32(j)), Selector: &metav1.LabelSelector{MatchLabels: p.Labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec},
				Settings: map[string]string{"tier": "web", "app": fmt.Sprint(i), "instance": p.Name},
				Extra:    &runtime.RawExtension{Raw: []byte(`{"mode":"blue"}`)},
			}
			r.Spec.Template.Spec.NodeName = ""
			withoutToken(&r.Spec.Template.Spec)
			for _, c := range []string{"Ready", "Progressing", "Available"} {
				r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
					Type: c, Status: "True", Reason: "AllReady", Message: "all replicas are ready", LastTransitionTime: metav1.Unix(int64(1_790_000_000+10*i+j), 0),
				})
			}
			raw, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, raw)
		}
	}
	return all
}

// withoutToken removes the volume that the API server adds to each pod under a unique name.
func withoutToken(s *corev1.PodSpec) {
	token := func(name string) bool { return strings.HasPrefix(name, "kube-api-access") }
	s.Volumes = slices.DeleteFunc(slices.Clone(s.Volumes), func(v corev1.Volume) bool { return token(v.Name) })
	s.Containers, s.InitContainers = slices.Clone(s.Containers), slices.Clone(s.InitContainers)
	for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeMounts = slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(m corev1.VolumeMount) bool { return token(m.Name) })
		}
	}
}

// TestCustomTypesShare: objects of a program's own Go type share their equal parts, and equal the plainly decoded
// ones.
func TestCustomTypesShare(t *testing.T) {
	c := newCodec(reflect.TypeFor[*release](), plans.NewTable(1<<20))
	parts := map[*corev1.Container]bool{}
	all := releases(t, 3, 20)
	for _, raw := range append(all, all...) {
		got, size, err := c.shared(raw)
		if err != nil || size <= 0 {
			t.Fatal(err, size)
		}
		want := must[any](t)(c.decode(raw))
		plans.CacheQuantities(want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		parts[&got.(*release).Spec.Template.Spec.Containers[0]] = true
	}
	if len(parts) > 3*3 {
		t.Errorf("%d lists of containers, of which three differ", len(parts))
	}
}

// BenchmarkCustomTypes decodes 20,000 objects of a program's own Go type, and keeps them.
func BenchmarkCustomTypes(b *testing.B) {
	for _, apps := range []int{200, 2000} {
		all := releases(b, apps, 20_000/apps)
		for _, shares := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d applications/shared=%v", apps, shares), func(b *testing.B) {
				c := newCodec(reflect.TypeFor[*release](), plans.NewTable(partsLimit))
				var live float64
				for b.Loop() {
					var before, after goruntime.MemStats
					goruntime.GC()
					goruntime.ReadMemStats(&before)
					objs := make([]any, len(all))
					for i, raw := range all {
						var err error
						if shares {
							objs[i], _, err = c.shared(raw)
						} else {
							objs[i], err = c.decode(raw)
						}
						if err != nil {
							b.Fatal(err)
						}
					}
					b.StopTimer()
					goruntime.GC()
					goruntime.ReadMemStats(&after)
					live = float64(after.HeapAlloc-before.HeapAlloc) / float64(len(all))
					goruntime.KeepAlive(objs)
					b.StartTimer()
				}
				b.ReportMetric(live, "live-B/object")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(all)), "µs/object")
			})
		}
	}
}
