package informer

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestKindOfBuiltins compares the guess from a type's package with client-go's scheme, for every
// kind of k8s.io/api that can be listed.
func TestKindOfBuiltins(t *testing.T) {
	kinds := 0
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		pointer := reflect.PointerTo(goType)
		if !strings.HasPrefix(goType.PkgPath(), "k8s.io/api/") || !pointer.Implements(reflect.TypeFor[Object]()) {
			continue
		}
		got, err := kindOf(pointer, nil)
		if err != nil || got != kind {
			t.Errorf("kindOf(%v) = %v, %v; want %v", pointer, got, err, kind)
		}
		kinds++
	}
	if kinds < 150 {
		t.Errorf("only %d kinds were compared", kinds)
	}
}

// gadget is a type of a user's.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	c := *g
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func TestKindOf(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	users := runtime.NewScheme()
	users.AddKnownTypeWithName(kind, &gadget{})
	for _, tc := range []struct {
		why    string
		goType reflect.Type
		scheme *runtime.Scheme
		want   schema.GroupVersionKind
		err    string
	}{
		{"a user's type, known to the scheme", reflect.TypeFor[*gadget](), users, kind, ""},
		{"a user's type, unknown", reflect.TypeFor[*gadget](), nil, schema.GroupVersionKind{}, "add it to Options.Scheme"},
		{"a built-in type beside a scheme that does not have it", reflect.TypeFor[*corev1.Pod](), users,
			schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, ""},
		{"an interface", reflect.TypeFor[Object](), users, schema.GroupVersionKind{}, "a pointer to a struct"},
		{"a struct", reflect.TypeFor[corev1.Pod](), nil, schema.GroupVersionKind{}, "a pointer to a struct"},
	} {
		got, err := kindOf(tc.goType, tc.scheme)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, %v", tc.why, got, err)
		}
	}
}
