package fill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/bench/gen"
)

// writers is the number of concurrent requests.
const writers = 24

// writer sends the requests of the components of a cluster. The API server derives a manager's
// name from the User-Agent.
type writer struct {
	gen                            *gen.Generator
	controller, scheduler, kubelet *kubernetes.Clientset
	owner, operator                dynamic.Interface
}

func newWriter(cfg *rest.Config, g *gen.Generator) (*writer, error) {
	w := &writer{gen: g}
	var err error
	as := func(userAgent string) *rest.Config {
		c := rest.CopyConfig(cfg)
		c.UserAgent, c.QPS = userAgent, -1
		return c
	}
	for _, t := range []struct {
		name string
		to   **kubernetes.Clientset
	}{{"kube-controller-manager", &w.controller}, {"kube-scheduler", &w.scheduler}, {"kubelet", &w.kubelet}} {
		c := as(t.name + "/v1.36.3")
		c.ContentType = runtime.ContentTypeProtobuf
		if *t.to, err = kubernetes.NewForConfig(c); err != nil {
			return nil, fmt.Errorf("make client of %s: %w", t.name, err)
		}
	}
	if w.owner, err = dynamic.NewForConfig(as("kubectl/v1.36.3")); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if w.operator, err = dynamic.NewForConfig(as("widget-operator/v1.4.0")); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return w, nil
}

// fill writes all objects.
func (c *Cluster) fill(ctx context.Context, o Options) error {
	w, err := newWriter(c.Config, gen.New(o.Seed))
	if err != nil {
		return err
	}
	if err := w.define(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		n    int
		do   func(context.Context, int) error
	}{
		{"namespaces", gen.Namespaces, w.namespace}, {"nodes", gen.Nodes, w.node}, {"pods", o.Pods, w.pod}, {"widgets", o.Widgets, w.widget},
	} {
		if err := each(ctx, step.n, step.do, func(done int) { fmt.Fprintf(o.Out, "fill: %d of %d %s\n", done, step.n, step.what) }); err != nil {
			return fmt.Errorf("write %s: %w", step.what, err)
		}
	}
	return nil
}

// each calls do with 0…n-1, concurrently, until a call fails. It calls report every 5,000 calls.
func each(ctx context.Context, n int, do func(context.Context, int) error, report func(done int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
				if d := int(done.Add(1)); d%5000 == 0 {
					report(d)
				}
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// define makes the API server serve Widgets.
func (w *writer) define(ctx context.Context) error {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := w.owner.Resource(crds).Create(ctx, gen.WidgetDefinition(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("define widgets: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("not served after a minute"))
	defer cancel()
	for {
		_, err := w.owner.Resource(gen.Widgets).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("define widgets: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (w *writer) namespace(ctx context.Context, i int) error {
	ns := w.gen.Namespace(i)
	if _, err := w.controller.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	for _, name := range w.gen.ServiceAccounts(ns.Name) {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := w.controller.CoreV1().ServiceAccounts(ns.Name).Create(ctx, sa, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create service account: %w", err)
		}
	}
	return nil
}

func (w *writer) node(ctx context.Context, i int) error {
	node := w.gen.Node(i)
	if _, err := w.kubelet.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	if _, err := w.kubelet.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update node: %w", err)
	}
	return nil
}

// pod creates a pod, binds it to its node and reports its status.
func (w *writer) pod(ctx context.Context, i int) error {
	pod := w.gen.Creation(i)
	pods := w.controller.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	final := w.gen.Pod(i)
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: created.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: final.Spec.NodeName},
	}
	if err := w.scheduler.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind pod: %w", err)
	}
	return Report(ctx, w.kubelet, created, final.Status)
}

// Report writes the status of a bound pod as its kubelet does. client is the kubelet's.
func Report(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, s corev1.PodStatus) error {
	patch, err := statusPatch(pod.UID, s)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("report pod's status: %w", err)
	}
	return nil
}

// statusPatch is a patch as a kubelet sends it: it has the order of the conditions and leaves the
// scheduler's condition alone.
func statusPatch(uid types.UID, s corev1.PodStatus) ([]byte, error) {
	var order []map[string]any
	for i, c := range s.Conditions {
		order = append(order, map[string]any{"type": c.Type})
		if c.Type == corev1.PodScheduled {
			s.Conditions[i] = corev1.PodCondition{}
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return nil, fmt.Errorf("convert status: %w", err)
	}
	for i, c := range fields["conditions"].([]any) {
		if m := c.(map[string]any); m["type"] == "" {
			fields["conditions"].([]any)[i] = map[string]any{"type": corev1.PodScheduled, "observedGeneration": 1}
		}
	}
	delete(fields, "qosClass")
	fields["$setElementOrder/conditions"] = order
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return b, nil
}

func (w *writer) widget(ctx context.Context, i int) error {
	widget := w.gen.Widget(i)
	status := widget.Object["status"]
	delete(widget.Object, "status")
	created, err := w.owner.Resource(gen.Widgets).Namespace(widget.GetNamespace()).Create(ctx, widget, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) { // the server has just begun to serve them
		return fmt.Errorf("create widget in %s: %w", widget.GetNamespace(), err)
	}
	if err != nil {
		return fmt.Errorf("create widget: %w", err)
	}
	if err := unstructured.SetNestedField(created.Object, status, "status"); err != nil {
		return fmt.Errorf("set status: %w", err)
	}
	operator := w.operator.Resource(gen.Widgets).Namespace(widget.GetNamespace())
	if _, err := operator.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update widget's status: %w", err)
	}
	return nil
}
