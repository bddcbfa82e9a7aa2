package decode

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

type metric struct {
	Value   resource.Quantity
	Pointer *resource.Quantity
	List    []resource.Quantity
	Array   [1]resource.Quantity
	Map     map[string]resource.Quantity
	Within  []metric
	None    *resource.Quantity
	Name    *string
	ByName  map[string]metric
	Lists   map[string][]resource.Quantity
	Mapped  map[string]map[string]*resource.Quantity
}

// cached reports whether String of a quantity no longer writes to it.
func cached(q *resource.Quantity) bool { return reflect.ValueOf(q).Elem().FieldByName("s").Len() > 0 }

func TestCacheQuantities(t *testing.T) {
	q := func() *resource.Quantity { return resource.NewMilliQuantity(1500, resource.DecimalSI) }
	m := metric{Value: *q(), Pointer: q(), List: []resource.Quantity{*q(), *q()}, Array: [1]resource.Quantity{*q()}}
	m.Map, m.Within = map[string]resource.Quantity{"a": *q()}, []metric{{Pointer: q()}, {}}
	m.ByName = map[string]metric{"a": {Pointer: q(), Within: []metric{{Value: *q()}}}}
	m.Lists, m.Mapped = map[string][]resource.Quantity{"a": {*q()}}, map[string]map[string]*resource.Quantity{"a": {"b": q()}}
	CacheQuantities(&m)
	for what, q := range map[string]*resource.Quantity{
		"a value": &m.Value, "a pointer's target": m.Pointer, "an element": &m.List[1], "an array's": &m.Array[0],
		"one in the type's own type": m.Within[0].Pointer, "zero": &m.Within[1].Value,
		"the target of a pointer in a map's value": m.ByName["a"].Pointer, "in a list of a map's value": &m.ByName["a"].Within[0].Value,
		"of a map of lists": &m.Lists["a"][0], "of a map of maps": m.Mapped["a"]["b"],
	} {
		if !cached(q) {
			t.Errorf("%s has no text", what)
		}
	}
	CacheQuantities(&corev1.Secret{})
	CacheQuantities(corev1.Secret{})
	CacheQuantities((*corev1.Pod)(nil))
	CacheQuantities(nil)
}

// TestSharedQuantities: several goroutines may read a pod's quantities, from protobuf and, after CacheQuantities,
// from JSON.
func TestSharedQuantities(t *testing.T) {
	half := resource.NewMilliQuantity(500, resource.DecimalSI)
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: half}}}},
		Containers: []corev1.Container{{
			Env:       []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Divisor: *half}}}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": *half}},
		}},
	}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	table, planned := NewTable(1<<20), &corev1.Pod{}
	for range 3 {
		planned = decodePod(t, table, raw)
	}
	fromJSON := &corev1.Pod{}
	if err := json.Unmarshal([]byte(`{"spec": {
		"volumes": [{"emptyDir": {"sizeLimit": "0.5"}}],
		"containers": [{"env": [{"valueFrom": {"resourceFieldRef": {}}}], "resources": {"limits": {"cpu": "0.5"}}}]
	}}`), fromJSON); err != nil {
		t.Fatal(err)
	}
	CacheQuantities(fromJSON)
	for _, p := range []*corev1.Pod{planned, fromJSON} {
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				_ = p.Spec.Volumes[0].EmptyDir.SizeLimit.String()
				_ = p.Spec.Containers[0].Env[0].ValueFrom.ResourceFieldRef.Divisor.String()
				_ = p.Spec.Containers[0].Resources.Limits.Cpu().String()
			})
		}
		readers.Wait()
	}
}

func BenchmarkCacheQuantities(b *testing.B) {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(pods(1, 1, 1)[0]); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		CacheQuantities(pod)
	}
}

// TestClear: a modified part is in no object that is decoded later.
func TestClear(t *testing.T) {
	raws := pods(8, 1, 1)
	table := NewTable(1 << 20)
	for _, raw := range raws[:6] {
		decodePod(t, table, raw)
	}
	if table.Stats().Parts == 0 {
		t.Fatal("nothing is shared")
	}
	damaged := decodePod(t, table, raws[6])
	was := damaged.Spec.Containers[0].Image
	damaged.Spec.Containers[0].Image = "damaged"
	if got := decodePod(t, table, raws[7]).Spec.Containers[0].Image; got != "damaged" {
		t.Fatalf("containers are not shared: %q", got)
	}
	table.Clear()
	if s := table.Stats(); s.Parts != 0 {
		t.Errorf("%d parts are left", s.Parts)
	}
	for range 3 {
		if got := decodePod(t, table, raws[7]).Spec.Containers[0].Image; got != was {
			t.Errorf("image %q, want %q", got, was)
		}
	}
}
