package decode

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// marshal returns a pod's bytes.
func marshal(t testing.TB, pod *corev1.Pod) []byte {
	t.Helper()
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestDecodeFrom: with any base, the object equals the one that the generated code decodes.
func TestDecodeFrom(t *testing.T) {
	table := NewTable(1 << 20)
	all := append(pods(8, 3, 11), nil, marshal(t, &corev1.Pod{Status: corev1.PodStatus{Phase: "Running"}}))
	bases := make([]Base, len(all))
	for i, raw := range all {
		bases[i] = Base{raw, decodePod(t, table, raw)}
	}
	for i, raw := range all {
		want := &corev1.Pod{}
		if err := want.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		for j, base := range bases {
			got := &corev1.Pod{}
			if _, ok := podPlan.DecodeFrom(table, raw, got, base); !ok {
				t.Fatalf("pod %d from %d is unusual", i, j)
			}
			if d := differ(reflect.ValueOf(want), reflect.ValueOf(got), "pod"); d != "" {
				t.Fatalf("pod %d from %d: %s", i, j, d)
			}
		}
	}
}

// TestDecodeFromShares: fields that are the same in both versions are shared, others are not.
func TestDecodeFromShares(t *testing.T) {
	table := NewTable(1 << 20)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}
	raw := marshal(t, pod)
	base := Base{raw, decodePod(t, table, raw)}
	pod.ResourceVersion = "2"
	pod.Status.Conditions = []corev1.PodCondition{{Type: "Ready", LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}}
	got := &corev1.Pod{}
	r, ok := podPlan.DecodeFrom(table, marshal(t, pod), got, base)
	was := base.Obj.(*corev1.Pod)
	if !ok || got.ResourceVersion != "2" || was.ResourceVersion != "1" || len(was.Status.Conditions) != 0 || len(got.Status.Conditions) != 1 {
		t.Fatalf("%+v from %+v", got, was)
	}
	if &got.Spec.Containers[0] != &was.Spec.Containers[0] {
		t.Error("containers are decoded again")
	}
	if reflect.ValueOf(got.Labels).Pointer() != reflect.ValueOf(was.Labels).Pointer() {
		t.Error("labels are decoded again")
	}
	if most := int64(2 * reflect.TypeFor[corev1.Pod]().Size()); r.Size > most {
		t.Errorf("it counts %d bytes, more than %d", r.Size, most)
	}
	twice := append(append([]byte{}, raw...), "\n\x05\n\x03two"...) // metadata: {name: "two"}, once more
	merged := &corev1.Pod{}
	if err := merged.Unmarshal(twice); err != nil || merged.Name != "two" || merged.Labels["app"] != "web" {
		t.Fatal(merged, err)
	}
	if _, ok := podPlan.DecodeFrom(table, raw, &corev1.Pod{}, Base{twice, merged}); ok {
		t.Error("a base with duplicate fields was accepted")
	}
	if _, ok := podPlan.DecodeFrom(nil, raw, &corev1.Pod{}, base); ok {
		t.Error("parts are shared without a table")
	}
	if _, ok := podPlan.DecodeFrom(table, raw, &corev1.Pod{}, Base{raw, &corev1.Node{}}); ok {
		t.Error("a base of another type was accepted")
	}
}

// FuzzDecodeFrom holds DecodeFrom to the generated code, with a base that differs in some bytes.
func FuzzDecodeFrom(f *testing.F) {
	for _, raw := range pods(4, 2, 21) {
		f.Add(raw, uint64(1), uint8(3))
		f.Add(raw, uint64(2), uint8(0))
	}
	table := NewTable(1 << 16)
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64, changes uint8) {
		base := append([]byte{}, raw...)
		r := rand.New(rand.NewPCG(seed, 0))
		for range min(changes, 8) {
			if len(base) > 0 {
				base[r.IntN(len(base))] ^= byte(1 << r.IntN(8))
			}
		}
		was := &corev1.Pod{}
		if _, ok := podPlan.Decode(table, base, was); !ok {
			return
		}
		got, want := &corev1.Pod{}, &corev1.Pod{}
		if _, ok := podPlan.DecodeFrom(table, raw, got, Base{base, was}); !ok {
			return
		}
		if err := want.Unmarshal(raw); err != nil {
			t.Fatalf("the generated code refuses it: %v", err)
		}
		if d := differ(reflect.ValueOf(want), reflect.ValueOf(got), "pod"); d != "" {
			t.Fatal(d)
		}
	})
}

// BenchmarkUpdates measures a kubelet's updates of 2,000 kept pods, decoded alone or from the version before. Live
// heap excludes the bytes of the versions.
func BenchmarkUpdates(b *testing.B) {
	s := kubelet(200, 10, 8)
	for _, from := range []bool{false, true} {
		b.Run(map[bool]string{false: "anew", true: "from-the-version-before"}[from], func(b *testing.B) {
			var cpu time.Duration
			var live float64
			for b.Loop() {
				runtime.GC()
				before := heap()
				table, pods, raws := NewTable(16<<20), make([]*corev1.Pod, len(s.list)), slices.Clone(s.list)
				for i, raw := range s.list {
					pods[i] = &corev1.Pod{}
					podPlan.Decode(table, raw, pods[i])
				}
				start := cpuTime()
				for _, u := range s.updates {
					pod := &corev1.Pod{}
					var ok bool
					if from {
						_, ok = podPlan.DecodeFrom(table, u.raw, pod, Base{raws[u.at], pods[u.at]})
					} else {
						_, ok = podPlan.Decode(table, u.raw, pod)
					}
					if !ok {
						b.Fatal("it is unusual")
					}
					pods[u.at], raws[u.at] = pod, u.raw
				}
				cpu += cpuTime() - start
				runtime.GC()
				live = float64(heap()-before) / float64(len(pods))
				runtime.KeepAlive(pods)
				runtime.KeepAlive(table)
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*len(s.updates)), "cpu-ns/update")
			b.ReportMetric(live, "live-B/object")
		})
	}
}
