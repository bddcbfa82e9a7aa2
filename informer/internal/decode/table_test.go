package decode

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pods returns n pods of a few templates, like those of a few ReplicaSets.
func pods(n, templates int, seed uint64) (raws [][]byte) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	kinds := make([]corev1.Pod, templates)
	for i := range kinds {
		g := generator{rand: rand.New(rand.NewPCG(seed, uint64(i))), full: true}
		g.fill(reflect.ValueOf(&kinds[i]).Elem(), 0)
	}
	for i := range n {
		p := kinds[rnd.IntN(templates)].DeepCopy()
		p.Name, p.UID, p.Status.PodIP = fmt.Sprint("pod-", i), "", fmt.Sprint("10.0.0.", i)
		raw, err := p.Marshal()
		if err != nil {
			panic(err)
		}
		raws = append(raws, raw)
	}
	return raws
}

var podPlan = For(reflect.TypeFor[corev1.Pod]())

func decodePod(t *testing.T, table *Table, raw []byte) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if _, ok := podPlan.Decode(table, raw, pod); !ok {
		t.Fatal("it is unusual")
	}
	return pod
}

// TestShares: after a few pods, pods of one template share their common parts; without a table nothing.
func TestShares(t *testing.T) {
	raws := pods(16, 1, 1)
	table := NewTable(1 << 20)
	var all []*corev1.Pod
	for _, raw := range raws {
		all = append(all, decodePod(t, table, raw))
	}
	a, b, first, own := all[14], all[15], all[0], decodePod(t, nil, raws[15])
	for what, same := range map[string]bool{
		"containers":                           &a.Spec.Containers[0] == &b.Spec.Containers[0],
		"security context":                     a.Spec.SecurityContext == b.Spec.SecurityContext,
		"labels":                               reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer(),
		"volumes":                              &a.Spec.Volumes[0] == &b.Spec.Volumes[0],
		"a part seen once is not in the table": &a.Spec.Containers[0] != &first.Spec.Containers[0],
		"own containers":                       &a.Spec.Containers[0] != &own.Spec.Containers[0],
		"own labels":                           reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(own.Labels).Pointer(),
	} {
		if !same {
			t.Errorf("%s: %v", what, same)
		}
	}
	if st := table.Stats(); st.Parts < 10 || st.Bytes < 1000 {
		t.Errorf("%+v", st)
	}
}

// TestUnusual: bytes that the API server would not write are left to the generated code. Unknown fields are skipped
// and reported, again for each object that shares them.
func TestUnusual(t *testing.T) {
	name := "\n\x03\n\x01a" // metadata {name: "a"}
	for _, tc := range []struct {
		why, raw  string
		lossy, ok bool
	}{
		{"nothing", "", false, true},
		{"a name", name, false, true},
		{"twice", name + name, false, false},
		{"in another order", "\x12\x00" + name, false, false},
		{"another wire type", "\x08\x01", false, false},
		{"cut off", name[:4], false, false},
		{"a length that is too long", "\n\xff\xff\xff\xff\xff\xff\xff\xff\x7f", false, false},
		{"a tag without an end", "\xff\xff\xff", false, false},
		{"field 0", "\x02\x00", false, false},
		{"a huge field number", "\xfa\xff\xff\xff\xff\x01\x00", false, false},
		{"a field that is not known", name + "\xa2\x06\x01x", true, true},
		{"one of 64 bits", name + "\xa1\x06" + "12345678", true, true},
		{"one of 32 bits", name + "\xa5\x06" + "1234", true, true},
		{"one of too few", name + "\xa5\x06" + "123", false, false},
		{"some, repeated", name + "\xa2\x06\x01x\xa2\x06\x01y", true, true},
		{"a group", name + "\xa3\x06\xa4\x06", false, false},
		{"one within metadata", "\n\x07\n\x01a\xa2\x06\x01x", true, true},
	} {
		for _, table := range []*Table{nil, NewTable(1 << 20)} {
			for range 3 {
				pod := &corev1.Pod{}
				r, ok := podPlan.Decode(table, []byte(tc.raw), pod)
				if ok != tc.ok || ok && r.Lossy != tc.lossy {
					t.Errorf("%s: lossy %v, ok %v", tc.why, r.Lossy, ok)
				}
				want := &corev1.Pod{}
				if err := want.Unmarshal([]byte(tc.raw)); ok && err != nil || ok && !reflect.DeepEqual(want, pod) {
					t.Errorf("%s: %v, want %v, %v", tc.why, pod, want, err)
				}
			}
		}
	}
	table := NewTable(1 << 20)
	ports := "\x12\x0a\x12\x08\n\x01c\xa2\x06\x02xx" // spec {containers: [{name: "c", 100: "xx"}]}
	for range 4 {
		if r, ok := podPlan.Decode(table, []byte(name+ports), &corev1.Pod{}); !r.Lossy || !ok {
			t.Errorf("lossy %v, ok %v", r.Lossy, ok)
		}
	}
	if _, ok := podPlan.Decode(nil, nil, corev1.Pod{}); ok {
		t.Error("Decode must refuse a value")
	}
	if _, ok := podPlan.Decode(nil, nil, &corev1.Node{}); ok {
		t.Error("Decode must refuse another type")
	}
	if For(reflect.TypeFor[schema.GroupVersionKind]()) != nil || For(reflect.TypeFor[string]()) != nil {
		t.Error("a type without protobuf has a plan")
	}
}

// TestFailureLeavesNothing: the parts of an undecodable object do not enter the table.
func TestFailureLeavesNothing(t *testing.T) {
	raw := pods(1, 1, 1)[0]
	table := NewTable(1 << 20)
	for range 5 {
		if _, ok := podPlan.Decode(table, append(slices.Clip(raw), 0xff), &corev1.Pod{}); ok {
			t.Fatal("it was decoded")
		}
	}
	if n := table.Stats().Parts; n > 0 {
		t.Errorf("there are %d parts", n)
	}
}

// TestConcurrent: several goroutines fill, use and sweep a table, and every object is right.
func TestConcurrent(t *testing.T) {
	raws := pods(200, 5, 3)
	want := make([]*corev1.Pod, len(raws))
	for i, raw := range raws {
		want[i] = decodePod(t, nil, raw)
	}
	table := NewTable(1 << 16) // small, so that it fills up
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 150 {
				n := (i*7 + w*31) % len(raws)
				got := &corev1.Pod{}
				if _, ok := podPlan.Decode(table, raws[n], got); !ok {
					t.Error("it is unusual")
				} else if d := differ(reflect.ValueOf(want[n]), reflect.ValueOf(got), "pod"); d != "" {
					t.Error(d)
				}
				if i%50 == 0 {
					table.Sweep()
				}
			}
		})
	}
	all.Wait()
}

// TestChurn: with changing templates the table stays within its limit, and unused parts are dropped.
func TestChurn(t *testing.T) {
	const limit = 1 << 18
	table := NewTable(limit)
	fixed := func() int64 { return table.Stats().Bytes }
	for round := range uint64(100) {
		for _, raw := range pods(12, 2, round) {
			decodePod(t, table, raw)
		}
		parts := int64(0)
		for i := range table.shards {
			parts += table.shards[i].size + table.shards[i].oldSize
		}
		if parts > limit*3/2 {
			t.Fatalf("round %d: %d bytes of parts", round, parts)
		}
	}
	before := fixed()
	table.Sweep()
	table.Sweep()
	if st := table.Stats(); st.Parts != 0 || st.Bytes >= before {
		t.Errorf("%+v", st)
	}
}

// TestQuantitiesInMaps: requests and limits are equal for reflect.DeepEqual, which many programs use, whether shared
// or not.
func TestQuantitiesInMaps(t *testing.T) {
	list := corev1.ResourceList{"memory": resource.MustParse("1536Mi"), "cpu": resource.MustParse("1500m")}
	raw := marshal(t, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: list}}}}})
	want, table := &corev1.Pod{}, NewTable(1<<20)
	if err := want.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if got := decodePod(t, table, raw); !reflect.DeepEqual(got.Spec, want.Spec) {
			t.Errorf("%+v, want %+v", got.Spec, want.Spec)
		}
	}
	if got := decodePod(t, nil, raw); !reflect.DeepEqual(got.Spec, want.Spec) {
		t.Errorf("%+v, want %+v", got.Spec, want.Spec)
	}
}

// TestRest: fields whose values never repeat are eventually not looked up.
func TestRest(t *testing.T) {
	table := NewTable(1 << 20)
	f := podPlan.root.fields[1].elem.fields[11] // labels
	rested := false
	for i := range 3 * trial {
		pod := &corev1.Pod{}
		pod.Labels = map[string]string{"n": fmt.Sprint(i)}
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if got := decodePod(t, table, raw); got.Labels["n"] != fmt.Sprint(i) {
			t.Fatal(got.Labels)
		}
		rested = rested || table.stat(f).rest.Load() > 0
	}
	if !rested {
		t.Error("it is looked up each time")
	}
}

// TestStringsOfParts: a part that outlives its object does not keep the object's strings.
func TestStringsOfParts(t *testing.T) {
	table := NewTable(1 << 20)
	own := strings.Repeat("of the object ", 100)
	decode := func() (*corev1.PodSecurityContext, weak.Pointer[byte]) {
		pod := &corev1.Pod{Status: corev1.PodStatus{Message: own}, Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
			Sysctls: []corev1.Sysctl{{Name: "a", Value: strings.Repeat("of the part ", 100)}},
		}}}
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got := decodePod(t, table, raw)
		return got.Spec.SecurityContext, weak.Make(unsafe.StringData(got.Status.Message))
	}
	decode()
	part, text := decode() // the second time it becomes a part
	for range 3 {
		runtime.GC()
	}
	if text.Value() != nil {
		t.Error("the object's strings are kept")
	}
	if part.Sysctls[0].Value != strings.Repeat("of the part ", 100) {
		t.Error(part.Sysctls[0].Value)
	}
}

// FuzzDecode compares plans with the generated code on any bytes, with a table that all inputs share: bad inputs must
// not affect valid objects.
func FuzzDecode(f *testing.F) {
	valid := pods(8, 2, 5)
	want := make([]*corev1.Pod, len(valid))
	for i, raw := range valid {
		f.Add(raw)
		want[i] = &corev1.Pod{}
		if err := want[i].Unmarshal(raw); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte("\n\x03\n\x01a\x12\x0a\x12\x08\n\x01c\xa2\x06\x02xx"))
	table := NewTable(1 << 16)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for range 3 {
			got, generated := &corev1.Pod{}, &corev1.Pod{}
			if _, ok := podPlan.Decode(table, raw, got); !ok {
				continue
			}
			if err := generated.Unmarshal(raw); err != nil {
				t.Fatalf("the generated code refuses it: %v", err)
			}
			if d := differ(reflect.ValueOf(generated), reflect.ValueOf(got), "pod"); d != "" {
				t.Fatal(d)
			}
		}
		n := len(raw) % len(valid)
		got := &corev1.Pod{}
		if _, ok := podPlan.Decode(table, valid[n], got); !ok {
			t.Fatal("a valid pod is refused")
		}
		if d := differ(reflect.ValueOf(want[n]), reflect.ValueOf(got), "pod"); d != "" {
			t.Fatalf("a valid pod: %s", d)
		}
	})
}
