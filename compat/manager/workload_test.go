package manager

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
	"metadata":{"name":"widgets.compat.tattler.dev"},
	"spec":{"group":"compat.tattler.dev","scope":"Namespaced",
		"names":{"kind":"Widget","listKind":"WidgetList","plural":"widgets","singular":"widget"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
			{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// workload makes random writes, directly to the server.
type workload struct {
	*testing.T
	rng  *rand.Rand
	api  client.Client
	made int
}

func newWorkload(t *testing.T) *workload {
	t.Helper()
	defineWidgets(t, here.cfg)
	api, err := client.New(here.cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &workload{T: t, rng: rand.New(rand.NewPCG(here.seed, 0)), api: api}
	until(t, time.Minute, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(widgetKind)
		return api.List(t.Context(), list)
	})
	return w
}

func defineWidgets(t *testing.T, cfg *rest.Config) {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = c.CoreV1().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/json").Body([]byte(crd)).Do(t.Context()).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// write makes one write to one object, which may not exist.
func (w *workload) write() {
	w.made++
	kind, name := w.rng.IntN(5), fmt.Sprintf("o%d", w.rng.IntN(20))
	namespace := []string{"default", "kube-public", "kube-system"}[w.rng.IntN(3)]
	if kind < 2 && namespace == "kube-system" {
		namespace = "default" // the cache has ConfigMaps of default and kube-public only
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	var o client.Object
	patch := fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, w.made)
	switch kind {
	case 0:
		u := widget()
		u.SetNamespace(namespace)
		u.SetName(name)
		u.Object["spec"] = map[string]any{"size": int64(w.made), "parts": []any{"a", map[string]any{"b": 1.5}}}
		o = u
		if w.rng.IntN(2) == 0 {
			patch = fmt.Sprintf(`{"spec":{"size":%d}}`, w.made)
		}
	case 1:
		o = &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"n": fmt.Sprint(w.made)}}
		patch = fmt.Sprintf(`{"data":{"n":"%d"}}`, w.made)
	case 2:
		meta.Labels = map[string]string{"type": "token"}
		o = &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": fmt.Append(nil, w.made)}}
	default:
		o = w.pod(meta)
		if w.rng.IntN(3) == 0 { // into or out of the cache's selection
			patch = fmt.Sprintf(`{"metadata":{"labels":{"kept":"%s"}}}`, []string{"yes", "no"}[w.rng.IntN(2)])
		}
	}
	var err error
	switch n := w.rng.IntN(8); {
	case n < 3:
		err = w.api.Create(w.Context(), o)
	case n < 6:
		err = w.api.Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)))
	case n < 7 || kind < 3:
		err = w.api.Delete(w.Context(), o, client.GracePeriodSeconds(0))
	default: // like a kubelet
		err = w.api.Status().Patch(w.Context(), o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"message":"%d"}}`, w.made)))
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		w.Fatalf("write %T %s: %v", o, client.ObjectKeyFromObject(o), err)
	}
}

// mark is a version of an object, and the handler that receives it.
type mark struct{ kind, key, version string }

// mark changes an object in every list that the operators watch: they have the server's state only once all their watches
// work.
func (w *workload) mark() (marks []mark) {
	w.Helper()
	w.made++
	for _, namespace := range []string{"default", "kube-public"} {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "mark", Labels: map[string]string{"kept": "yes"}}
		u := widget()
		u.SetNamespace(namespace)
		u.SetName(meta.Name)
		p := w.pod(meta)
		p.SetLabels(meta.Labels)
		label := fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, w.made)
		for _, m := range []struct {
			kind, patch string
			o           client.Object
		}{
			{"widgets", fmt.Sprintf(`{"spec":{"size":%d}}`, w.made), u},
			{"configmaps", fmt.Sprintf(`{"data":{"n":"%d"}}`, w.made), &corev1.ConfigMap{ObjectMeta: meta}},
			{"secrets", label, &corev1.Secret{ObjectMeta: meta}},
			{"pods", label, p},
		} {
			key := client.ObjectKeyFromObject(m.o).String()
			err := w.api.Create(w.Context(), m.o)
			if err == nil || apierrors.IsAlreadyExists(err) {
				err = w.api.Patch(w.Context(), m.o, client.RawPatch(types.MergePatchType, []byte(m.patch)))
			}
			if err != nil {
				w.Fatalf("write %T %s: %v", m.o, key, err)
			}
			marks = append(marks, mark{m.kind, key, m.o.GetResourceVersion()})
		}
	}
	return marks
}

// pod returns a pod. Its name determines whether the controller wants it, so that this never changes.
func (w *workload) pod(meta metav1.ObjectMeta) client.Object {
	meta.Labels = map[string]string{"kept": []string{"yes", "yes", "no"}[w.rng.IntN(3)]}
	if len(meta.Name)%3 == 0 {
		meta.Annotations = map[string]string{"wanted": "no"}
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName:   fmt.Sprintf("node-%d", w.rng.IntN(4)),
		Containers: []corev1.Container{{Name: "main", Image: fmt.Sprintf("image:%d", w.made)}},
	}}
}

// truth returns the states that the controllers must have seen last, from the server.
func (w *workload) truth() (map[string]string, error) {
	out := map[string]string{}
	ctx := context.Background()
	pods, secrets, widgets := &corev1.PodList{}, &corev1.SecretList{}, &unstructured.UnstructuredList{}
	widgets.SetGroupVersionKind(widgetKind)
	err := errors.Join(w.api.List(ctx, pods, client.MatchingLabels{"kept": "yes"}), w.api.List(ctx, secrets), w.api.List(ctx, widgets))
	for _, p := range pods.Items {
		if wanted(&p) {
			out[at("pods", client.ObjectKeyFromObject(&p))] = p.ResourceVersion + " " + p.Spec.Containers[0].Image
		}
	}
	for _, s := range secrets.Items {
		out[at("secrets", client.ObjectKeyFromObject(&s))] = s.ResourceVersion + fmt.Sprint(s.Labels)
	}
	for _, o := range widgets.Items {
		m := &corev1.ConfigMap{}
		err = errors.Join(err, client.IgnoreNotFound(w.api.Get(ctx, client.ObjectKeyFromObject(&o), m)))
		out[at("widgets", client.ObjectKeyFromObject(&o))] = fmt.Sprint(o.GetGeneration(), o.Object["spec"], m.Data)
	}
	return out, err
}

// until waits for a condition, and fails with its last error.
func until(t *testing.T, limit time.Duration, ok func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	if err := clustertest.Poll(ctx, 20*time.Millisecond, ok); err != nil {
		t.Fatal(err)
	}
}
