package soak

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
)

// Widget is a user's Go type for the custom resource.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec,omitempty"`
	Status            map[string]any `json:"status,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec, c.Status = runtime.DeepCopyJSON(w.Spec), runtime.DeepCopyJSON(w.Status)
	return &c
}

var widgetKind = widgetResource.GroupVersion().WithKind("Widget")

func widgetScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(widgetKind, &Widget{})
	return s
}

// The lists with which views are compared.

func (w *world) typed(namespaces []string, o metav1.ListOptions) func(context.Context) ([]*corev1.Pod, error) {
	return each(namespaces, func(ctx context.Context, ns string) (out []*corev1.Pod, err error) {
		list, err := w.client.CoreV1().Pods(ns).List(ctx, o)
		if err == nil {
			out = pointers(list.Items)
		}
		return out, err
	})
}

func (w *world) maps(gvr schema.GroupVersionResource, namespaces []string, o metav1.ListOptions) func(context.Context) ([]*unstructured.Unstructured, error) {
	return each(namespaces, func(ctx context.Context, ns string) (out []*unstructured.Unstructured, err error) {
		list, err := w.dyn.Resource(gvr).Namespace(ns).List(ctx, o)
		if err == nil {
			out = pointers(list.Items)
		}
		return out, err
	})
}

func (w *world) partial(gvr schema.GroupVersionResource, namespaces []string, o metav1.ListOptions) func(context.Context) ([]*metav1.PartialObjectMetadata, error) {
	return each(namespaces, func(ctx context.Context, ns string) (out []*metav1.PartialObjectMetadata, err error) {
		list, err := w.meta.Resource(gvr).Namespace(ns).List(ctx, o)
		if err == nil {
			out = pointers(list.Items)
		}
		return out, err
	})
}

func (w *world) widgets(ctx context.Context) ([]*Widget, error) {
	list, err := w.dyn.Resource(widgetResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]*Widget, len(list.Items))
	for i := range list.Items {
		out[i] = &Widget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// each lists in each namespace; nil means all.
func each[T any](namespaces []string, list func(ctx context.Context, ns string) ([]T, error)) func(context.Context) ([]T, error) {
	if namespaces == nil {
		namespaces = []string{""}
	}
	return func(ctx context.Context) (all []T, err error) {
		for _, ns := range namespaces {
			some, err := list(ctx, ns)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	partialKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
)

func podIPs(p *corev1.Pod) []string {
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

func appOf[T informer.Object](o T) []string { return []string{o.GetLabels()[appLabel]} }

// place is a pod's namespace and phase, to show that an index's values can be of any comparable type.
type place struct {
	namespace string
	phase     corev1.PodPhase
}

func placeOf(p *corev1.Pod) []place { return []place{{p.Namespace, p.Status.Phase}} }
