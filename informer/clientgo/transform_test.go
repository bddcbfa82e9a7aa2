package clientgo

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// poison writes to every part of a pod, or of its metadata, that objects could share.
func poison(obj any) {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Labels["app"] = "poison"
		o.Spec.Containers[0].Image = "poison"
		o.Spec.Containers[0].Args[0] = "poison"
		o.Finalizers[0] = "poison"
	case *unstructured.Unstructured:
		containers, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "containers")
		containers.([]any)[0].(map[string]any)["image"] = "poison"
		labels, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "labels")
		labels.(map[string]any)["app"] = "poison"
	default:
		m.GetLabels()["app"] = "poison"
		m.GetFinalizers()[0] = "poison"
	}
}

// TestTransformsCannotWriteToSharedParts: objects that stay decoded share their equal parts with a transform, too.
// The transform writes to its objects, keeps them, and writes again later. Neither may affect anything but what it
// returned.
func TestTransformsCannotWriteToSharedParts(t *testing.T) {
	for _, storage := range []Storage{Auto, Live} {
		for _, a := range accesses {
			if _, own := a.example.(*gadget); own || a.gvr != pods {
				continue
			}
			t.Run(fmt.Sprint(storage, ", ", a.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { transformsAndShares(t, storage, a) })
			})
		}
	}
}

func transformsAndShares(t *testing.T, storage Storage, a access) {
	server := informertest.NewServer()
	server.Serve(pods, "Pod")
	put := func(i int, node string) {
		server.Put(pods, "shop", fmt.Sprint("p", i), map[string]any{
			"metadata": map[string]any{
				"labels": map[string]any{"app": "web"}, "finalizers": []any{"example.com/wait"}, "annotations": map[string]any{"node": node},
				"managedFields": []any{map[string]any{"manager": "kubectl", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}},
			},
			"spec": map[string]any{"nodeName": node, "containers": []any{map[string]any{"name": "main", "image": "app:1", "args": []any{"-v"}}}},
		})
	}
	const n = 20
	for i := range n {
		put(i, "n1")
	}
	e := must[*Engine](t)(New(server.Config(), Options{Storage: storage, Hot: 1}))
	i := e.NewInformer(a.lw(t, server.Config(), e.HTTPClient()), a.example, 0, cache.Indexers{})
	strip := cache.TransformFunc(func(obj any) (any, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		m.SetManagedFields(nil)
		return obj, nil
	})
	var had []any
	poisoned := ""
	if err := i.SetTransform(func(obj any) (any, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		had = append(had, obj)
		if m.GetName() == poisoned {
			poison(obj)
		}
		return strip(obj)
	}); err != nil {
		t.Fatal(err)
	}
	start(t, i)
	pass(time.Second)
	read := func() map[string]runtime.Object {
		all := map[string]runtime.Object{}
		for range readsToKeep { // Auto keeps frequently read objects decoded
			for _, obj := range i.GetStore().List() {
				m := must[metav1.Object](t)(meta.Accessor(obj))
				all[m.GetName()] = obj.(runtime.Object)
			}
		}
		return all
	}
	read()
	poisoned = "p1"
	for k := range n { // only the node changes: from now on each object is kept decoded
		put(k, "n2")
	}
	pass(time.Second)
	want := map[string]runtime.Object{}
	for name, obj := range read() {
		want[name] = obj.DeepCopyObject()
		m := must[metav1.Object](t)(meta.Accessor(obj))
		if app := m.GetLabels()["app"]; (app == "poison") != (name == poisoned) {
			t.Errorf("%s has app %s", name, app)
		}
		if m.GetManagedFields() != nil || m.GetAnnotations()["node"] != "n2" {
			t.Errorf("%s is %+v", name, m)
		}
	}
	if len(want) != n {
		t.Fatalf("%d objects, want %d", len(want), n)
	}
	for _, obj := range had {
		poison(obj)
	}
	parts := map[uintptr]bool{}
	for name, obj := range read() {
		if !reflect.DeepEqual(obj, want[name]) {
			t.Errorf("the transform wrote to %s through an object that it had: %+v", name, obj)
		}
		parts[labelsOf(obj)] = true
	}
	if len(parts) > n/2 {
		t.Errorf("%d objects have %d maps of labels, of which all but one are equal", n, len(parts))
	}
}

// labelsOf returns the address of an object's labels.
func labelsOf(obj any) uintptr {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		labels, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "labels")
		return reflect.ValueOf(labels).Pointer()
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return reflect.ValueOf(m.GetLabels()).Pointer()
}
