package guide

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// cluster is the control plane of the samples. It has no controllers, so that nothing but the stories changes anything.
var cluster *devcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(clustertest.Main(m, clustertest.Options{
		PodsAnywhere: true,
		Begin: func(_ context.Context, c *devcluster.Cluster) error {
			cluster = c
			return nil
		},
	}))
}

// patience bounds the wait for a step. A stream whose kind is not served looks for it after up to five minutes.
const patience = 6 * time.Minute

// world is the environment that steps can change.
type world struct {
	t      *testing.T
	client kubernetes.Interface
	lines  *lines // that the sample connects by
	again  func(between func())
}

// newWorld empties the namespace shop.
func newWorld(t *testing.T) *world {
	t.Helper()
	own := &lines{open: map[net.Conn]bool{}}
	t.Cleanup(own.cut)
	client, err := kubernetes.NewForConfig(config(t, own))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if _, err := client.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{}); err != nil {
		if _, err := client.CoreV1().Namespaces().Create(ctx, shop, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, empty := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		client.AppsV1().Deployments("shop").DeleteCollection,
		client.CoreV1().Pods("shop").DeleteCollection,
		client.CoordinationV1().Leases("shop").DeleteCollection,
	} {
		if err := empty(ctx, now, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return &world{t: t, client: client, lines: &lines{open: map[net.Conn]bool{}}}
}

// config is the administrator's, with connections that can be cut.
func config(t *testing.T, l *lines) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	cfg.Dial = l.dial
	return cfg
}

func (w *world) create(name string, labels map[string]string) {
	w.t.Helper()
	one := int32(1)
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop/" + name}}},
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod},
	}
	if _, err := w.client.AppsV1().Deployments("shop").Create(w.t.Context(), d, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// createPod makes a pod on a node, of an app, that mounts ConfigMaps.
func (w *world) createPod(name, node, app string, configMaps ...string) {
	w.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "shop/" + app}}},
	}
	for _, c := range configMaps {
		v := corev1.Volume{Name: c}
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: c}}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	if _, err := w.client.CoreV1().Pods("shop").Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) scale(name string, replicas int32) {
	w.t.Helper()
	api := w.client.AppsV1().Deployments("shop")
	d, err := api.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	d.Spec.Replicas = &replicas
	if _, err := api.Update(w.t.Context(), d, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(name string) {
	w.t.Helper()
	if err := w.client.AppsV1().Deployments("shop").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// lines are connections to the API server.
type lines struct {
	mu   sync.Mutex
	open map[net.Conn]bool
}

func (l *lines) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = true
	return c, nil
}

// cut closes every connection.
func (l *lines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
}
