package informer

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// TestUnstructuredShares: unstructured objects decoded with a table share parts; copies, and objects decoded without a
// table, share nothing writable.
func TestUnstructuredShares(t *testing.T) {
	c := newCodec(reflect.TypeFor[*unstructured.Unstructured](), schema.GroupVersionKind{})
	raw := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"web"}},"spec":{"containers":[{"name":"c"}]}}`)
	parts := plans.NewTable(1 << 20)
	read := func(parts *plans.Table) *unstructured.Unstructured {
		obj, r, err := c.read(parts, wire.JSON, raw)
		if err != nil || r.Size < 300 {
			t.Fatalf("%v, %v", r, err)
		}
		return obj.(*unstructured.Unstructured)
	}
	spec := func(u *unstructured.Unstructured) uintptr { return reflect.ValueOf(u.Object["spec"]).Pointer() }
	read(parts) // the second read makes a part
	a, b := read(parts), read(parts)
	if spec(a) != spec(b) {
		t.Error("shared objects have a spec each")
	}
	obj, err := deepCopy(a)
	if err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string]*unstructured.Unstructured{"copy": obj.(*unstructured.Unstructured), "private": read(nil)} {
		if spec(own) == spec(a) || spec(own) == spec(read(nil)) {
			t.Errorf("%s: it has a spec that others have", name)
		}
		if err := unstructured.SetNestedField(own.Object, "other", "metadata", "labels", "app"); err != nil {
			t.Fatal(err)
		}
		if got := read(parts).GetLabels()["app"]; got != "web" {
			t.Errorf("%s: a write reached the shared labels: %s", name, got)
		}
	}
}
