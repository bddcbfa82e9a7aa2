package gen

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldsKey identifies pods with the same managed fields, apart from owner and address.
type fieldsKey struct {
	app   int
	state state
}

// fields are the fields that kube-controller-manager and kubelet own, as FieldsV1, in a pod of the
// application's first place with the sentinel's address.
type fields struct{ created, reported string }

// fieldsOf returns the fields of a pod. It caches them for the pods of an application.
func (g *Generator) fieldsOf(id *identity) fields {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := fieldsKey{id.app, id.state}
	f, ok := g.fields[key]
	if !ok {
		f = g.ownership(id)
		g.fields[key] = f
	}
	p := &g.apps[id.app].places
	f.created = strings.ReplaceAll(f.created, string(p[0].ownerUID), string(p[id.place].ownerUID))
	f.reported = strings.ReplaceAll(f.reported, sentinel.texts[textIP], id.texts[textIP])
	return f
}

func entry(manager, subresource, raw string, id *identity, at moment) metav1.ManagedFieldsEntry {
	t := id.time(at)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &t,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(raw), Subresource: subresource,
	}
}

// ownership works as in an API server: a field manager records the creation by
// kube-controller-manager and the status update by kubelet. Admission and binding have no manager.
func (g *Generator) ownership(of *identity) fields {
	id := sentinel
	id.app, id.state = of.app, of.state
	created := g.create(&id)
	stored := update(&corev1.Pod{}, created, "", "kube-controller-manager").(*corev1.Pod)
	bound := g.create(&id)
	admit(bound, &id)
	bind(bound, &id)
	bound.ManagedFields = stored.ManagedFields
	reported := bound.DeepCopy()
	reported.Status = g.status(&id, bound)
	final := update(bound, reported, "status", "kubelet").(*corev1.Pod)
	var f fields
	for _, e := range final.ManagedFields {
		switch e.Subresource {
		case "status":
			f.reported = e.FieldsV1.GetRawString()
		default:
			f.created = e.FieldsV1.GetRawString()
		}
	}
	return f
}

// podConverter knows the schema of pods.
var podConverter = applyconfigurations.NewTypeConverter(scheme.Scheme)

// update returns now with the managedFields that an API server sets when manager replaces old by now.
func update(old, now *corev1.Pod, subresource, manager string) runtime.Object {
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	old.SetGroupVersionKind(gvk)
	now.SetGroupVersionKind(gvk)
	// A subresource's manager does not own the fields that the subresource cannot write.
	reset := fieldpath.MakePathOrDie("status")
	if subresource == "status" {
		reset = fieldpath.MakePathOrDie("spec")
	}
	m, err := managedfields.NewDefaultFieldManager(podConverter, scheme.Scheme, scheme.Scheme, scheme.Scheme, gvk, gvk.GroupVersion(), subresource,
		map[fieldpath.APIVersion]fieldpath.Filter{"v1": fieldpath.NewExcludeSetFilter(fieldpath.NewSet(reset))})
	if err == nil {
		var obj runtime.Object
		if obj, err = m.Update(old, now, manager); err == nil {
			return obj
		}
	}
	panic(fmt.Sprintf("gen: find the managed fields of a pod: %v", err))
}
