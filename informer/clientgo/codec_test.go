package clientgo

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestRoundTripEveryKind packs an object of every kind with every field set, filled as in Kubernetes' own tests.
func TestRoundTripEveryKind(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "HEAD", "*.pb"))
	if err != nil {
		t.Fatal(err)
	}
	p, packed := newPacking(false), 0
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if _, ok := obj.(metav1.Object); err != nil || !ok {
			continue
		}
		kind := obj.GetObjectKind().GroupVersionKind()
		for _, k := range []schema.GroupVersionKind{{}, kind} {
			obj := obj.DeepCopyObject()
			obj.GetObjectKind().SetGroupVersionKind(k)
			it := p.item(obj)
			if it.v == nil {
				t.Logf("%v is kept as it is", kind)
				continue
			}
			packed++
			if back := it.decode(); !reflect.DeepEqual(back, obj) {
				t.Errorf("%v comes back changed", kind)
			}
		}
	}
	if packed < 200 {
		t.Errorf("only %d objects were packed", packed)
	}
}

// widget is a typical type of a custom resource.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Size              *int32                       `json:"size,omitempty"`
	Names             []string                     `json:"names,omitempty"`
	Kept              []string                     `json:"kept"`
	Limits            map[string]resource.Quantity `json:"limits,omitempty"`
	Since             *metav1.Time                 `json:"since,omitempty"`
	Every             metav1.Duration              `json:"every,omitempty"`
	Extra             runtime.RawExtension         `json:"extra,omitempty"`
	Ratio             float64                      `json:"ratio,omitempty"`
	Children          []widgetPart                 `json:"children,omitempty"`
	Custom            custom                       `json:"custom,omitempty"`
	Hidden            string                       `json:"-"`
}

type widgetPart struct {
	Name     string       `json:"name"`
	Children []widgetPart `json:"children,omitempty"` // recursive
}

// custom is a type with its own encoding, which drops a field.
type custom struct{ Kept, Lost string }

func (c custom) MarshalText() ([]byte, error)     { return []byte(c.Kept), nil }
func (c *custom) UnmarshalText(text []byte) error { c.Kept = string(text); return nil }

func (w *widget) DeepCopyObject() runtime.Object {
	c := *w
	return &c
}

func TestObjectsComeBackAsTheyWere(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_700_000_000, 0).Local())
	for _, tc := range []struct {
		why    string
		obj    any
		packed bool
	}{
		{"a pod", pod("a/one", "1", "n1"), true},
		{"an empty list is not nil", &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{}}}, false},
		{"deep inside, too", &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{}}}}}, false},
		{"nor an empty map", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}, false},
		{"a pointer to nothing is not nil", &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}}}, true},
		{"a time", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: now}}, true},
		{"a time with a monotonic clock", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now()}}, false},
		{"a time elsewhere", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.UTC())}}, false},
		{"bytes, empty and none", &corev1.Secret{Data: map[string][]byte{"a": {}, "b": []byte("x")}}, true},
		{"nil bytes under a key", &corev1.Secret{Data: map[string][]byte{"a": nil}}, false},
		{"a quantity as the server writes it", podWith("512Mi"), true},
		{"one that it would not", podWith("0.5"), false},
		{"a kind", &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, true},
		{"metadata alone", &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "x/v1", Kind: "Widget"}, ObjectMeta: metav1.ObjectMeta{Name: "w"}}, true},
		{"a Go type of a custom resource", &widget{Names: []string{"a"}, Since: &now, Limits: map[string]resource.Quantity{"cpu": resource.MustParse("1")}, Children: []widgetPart{{"a", []widgetPart{{"b", nil}}}}}, true},
		{"an empty list that is written", &widget{Kept: []string{}}, true},
		{"one that is not", &widget{Names: []string{}}, false},
		{"deep inside", &widget{Children: []widgetPart{{"a", []widgetPart{}}}}, false},
		{"a field that is never written", &widget{Hidden: "x"}, false},
		{"raw JSON", &widget{Extra: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, true},
		{"raw JSON that would be written otherwise", &widget{Extra: runtime.RawExtension{Raw: []byte(`{"a": 1}`)}}, false},
		{"a type's own encoding, where it works", &widget{Custom: custom{Kept: "x"}}, true},
		{"and where it does not", &widget{Custom: custom{Kept: "x", Lost: "y"}}, false},
		{"not representable in JSON", &widget{Ratio: math.NaN()}, false},
		{"not a struct", ptr("x"), false},
		{"a struct without metadata", &struct{ A int }{1}, false},
	} {
		p := newPacking(false)
		it := p.item(tc.obj)
		if packed := it.v != nil; packed != tc.packed {
			t.Errorf("%s: packed %v, want %v", tc.why, packed, tc.packed)
		}
		if tc.why == "not representable in JSON" {
			continue // NaN does not equal itself
		}
		if back := it.decode(); !reflect.DeepEqual(back, tc.obj) {
			t.Errorf("%s: comes back as %+v", tc.why, back)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func podWith(memory string) *corev1.Pod {
	p := pod("a/one", "1", "n1")
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse(memory)}
	return p
}

func TestUnstructuredComesBack(t *testing.T) {
	for _, tc := range []struct {
		why    string
		value  any
		packed bool
	}{
		{"integers", int64(math.MaxInt64), true},
		{"a float that looks like an integer", float64(1), true},
		{"a large float", 1e300, true},
		{"a small one", 5e-324, true},
		{"the other zero", math.Copysign(0, -1), true},
		{"NaN", math.NaN(), false},
		{"an int, which JSON never makes", 1, false},
		{"text of any kind", "a\"\\\n\x00 é 漢 \u2028 </script>", true},
		{"bytes that are not UTF-8", "\xff", false},
		{"nothing", nil, true},
		{"empty and nested", map[string]any{"a": []any{}, "b": map[string]any{}, "c": []any{nil, true, "x", int64(-1)}}, true},
		{"a list that is nil", []any(nil), false},
		{"a map that is nil", map[string]any(nil), false},
		{"a list of another type", []string{"a"}, false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Widget", "metadata": map[string]any{"name": "w"}, "value": tc.value}}
		it := newPacking(false).item(u)
		if packed := it.v != nil; packed != tc.packed {
			t.Errorf("%s: packed %v, want %v", tc.why, packed, tc.packed)
			continue
		}
		if !tc.packed {
			continue
		}
		back, ok := it.decode().(*unstructured.Unstructured)
		if !ok || !reflect.DeepEqual(back, u) || math.Signbit(asFloat(tc.value)) != math.Signbit(asFloat(back.Object["value"])) {
			t.Errorf("%s: %#v comes back as %#v", tc.why, u.Object, back.Object)
		}
	}
}

func asFloat(v any) float64 {
	f, _ := v.(float64)
	return f
}

// liar is a type whose encoding loses data that its check cannot detect. The first objects are decoded to find out.
type liar struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	liarSpec          `json:",inline"`
	otherSpec         `json:",inline"`
}

// liarSpec and otherSpec have fields of the same name, so JSON encodes neither.
type (
	liarSpec  struct{ A string }
	otherSpec struct{ A string }
)

func (l *liar) DeepCopyObject() runtime.Object { c := *l; return &c }

func TestATypeThatLosesDataIsKeptAsItIs(t *testing.T) {
	p := newPacking(false)
	if it := p.item(&liar{liarSpec: liarSpec{A: "1"}}); it.v != nil {
		t.Fatal("it was packed")
	}
	if it := p.item(&liar{}); it.v != nil {
		t.Error("a type known to be inexact is encoded again")
	}
}
