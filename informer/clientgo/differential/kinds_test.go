package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// kind is a Go form of objects.
type kind struct {
	name    string
	example func() runtime.Object
	// fill sets contents that depend on n.
	fill func(o runtime.Object, n int)
}

var kinds = []kind{
	{
		name:    "typed",
		example: func() runtime.Object { return &corev1.Pod{} },
		fill: func(o runtime.Object, n int) {
			p := o.(*corev1.Pod)
			p.Spec.NodeName = fmt.Sprintf("node-%d", n%3)
			p.Spec.Containers = []corev1.Container{{Name: "main", Image: fmt.Sprintf("image:%d", n), Ports: []corev1.ContainerPort{{ContainerPort: int32(n)}}}}
			p.Status.Phase = corev1.PodPhase([]string{"Pending", "Running", ""}[n%3])
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(n, "m")), "memory": resource.MustParse("1Gi")}
			if n%4 == 0 { // no codec distinguishes it from nil
				p.Annotations, p.Spec.Tolerations, p.Spec.NodeSelector = map[string]string{}, []corev1.Toleration{}, map[string]string{}
			}
			p.Status.StartTime = &metav1.Time{Time: metav1.Unix(int64(n), 0).Time}
		},
	},
	{
		name: "unstructured",
		example: func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
		},
		fill: func(o runtime.Object, n int) {
			o.(*unstructured.Unstructured).Object["spec"] = map[string]any{
				"whole": int64(n), "broken": float64(n) + 0.5, "flag": n%2 == 0, "nothing": nil,
				"list": []any{int64(n), fmt.Sprint(n), map[string]any{}, []any{}}, "text": "<é\n\"" + fmt.Sprint(n),
			}
		},
	},
	{
		name: "metadata",
		example: func() runtime.Object {
			o := &metav1.PartialObjectMetadata{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
			return o
		},
		fill: func(o runtime.Object, n int) {
			m := o.(*metav1.PartialObjectMetadata)
			m.Generation, m.Finalizers = int64(n), []string{fmt.Sprint("f-", n%4)}
		},
	},
	{
		name:    "a Go type of a custom resource",
		example: func() runtime.Object { return &gadget{} },
		fill: func(o runtime.Object, n int) {
			g := o.(*gadget)
			g.Spec = gadgetSpec{Size: n, Limits: map[string]string{"n": fmt.Sprint(n)}, Parts: []string{fmt.Sprint(n)}, Since: metav1.Unix(int64(n), 0)}
			if n%4 == 0 { // no codec distinguishes it from nil
				g.Annotations, g.Spec.Limits, g.Spec.Parts = map[string]string{}, map[string]string{}, []string{}
			}
		},
	},
	{
		name:    "no type of an API",
		example: func() runtime.Object { return &plain{} },
		fill:    func(o runtime.Object, n int) { o.(*plain).Only = n },
	},
}

// gadget can only be encoded as JSON.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              gadgetSpec `json:"spec"`
}

type gadgetSpec struct {
	Size   int               `json:"size"`
	Limits map[string]string `json:"limits,omitempty"`
	Parts  []string          `json:"parts,omitempty"`
	Since  metav1.Time       `json:"since,omitempty"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	c := *g
	g.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Limits, c.Spec.Parts = maps.Clone(g.Spec.Limits), slices.Clone(g.Spec.Parts)
	return &c
}

// plain is a type without a codec, as a test or a fake client may put into an informer.
type plain struct {
	metav1.ObjectMeta
	Only any `json:"-"`
}

func (p *plain) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (p *plain) DeepCopyObject() runtime.Object {
	c := &plain{Only: p.Only}
	p.DeepCopyInto(&c.ObjectMeta)
	return c
}

// object makes the nth object of a kind, with a key and a UID, which may be empty.
func (k kind) object(namespace, name, uid string, n int, rng *rand.Rand) runtime.Object {
	o := k.example()
	m := accessor(o)
	m.SetNamespace(namespace)
	m.SetName(name)
	m.SetUID(types.UID(uid))
	m.SetLabels(map[string]string{"app": []string{"web", "db", "job"}[rng.IntN(3)], "n": fmt.Sprint(n)})
	if rng.IntN(3) == 0 {
		m.SetLabels(nil)
	}
	if rng.IntN(2) == 0 {
		m.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}})
	}
	k.fill(o, n)
	return o
}

func accessor(o any) metav1.Object {
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err) // the objects are ours
	}
	return m
}

// indexers are index functions that require the program's type.
func (k kind) indexers(names ...string) cache.Indexers {
	want := reflect.TypeOf(k.example())
	typed := func(f func(metav1.Object) []string) cache.IndexFunc {
		return func(o any) ([]string, error) {
			if reflect.TypeOf(o) != want {
				return nil, fmt.Errorf("%T, not %s", o, want)
			}
			return f(accessor(o)), nil
		}
	}
	all := cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"labels":             typed(func(o metav1.Object) []string { return slices.Collect(maps.Values(o.GetLabels())) }),
		"managed":            typed(func(o metav1.Object) []string { return []string{fmt.Sprint(len(o.GetManagedFields()))} }),
		"twice":              typed(func(o metav1.Object) []string { return []string{o.GetName(), o.GetName(), "all"} }),
	}
	out := cache.Indexers{}
	for _, name := range names {
		out[name] = all[name]
	}
	return out
}

// transforms are typical transforms. They are idempotent: client-go calls them twice for objects of a streaming list.
var transforms = map[string]cache.TransformFunc{
	"none": nil,
	"in place": func(o any) (any, error) {
		m := accessor(o)
		m.SetManagedFields(nil)
		mark(m)
		return o, nil
	},
	"a copy": func(o any) (any, error) {
		c := o.(runtime.Object).DeepCopyObject()
		mark(accessor(c))
		return c, nil
	},
	"forgets versions": func(o any) (any, error) {
		mark(accessor(o))
		accessor(o).SetResourceVersion("")
		return o, nil
	},
}

func mark(m metav1.Object) {
	a := m.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a["transformed"] = "yes"
	m.SetAnnotations(a)
}
