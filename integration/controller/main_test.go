// Package controller tests informer/controller on a real control plane: real conflicts, refusals, outages and
// leases, and killed processes.
package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// cluster is the control plane that the tests share, one after the other.
var cluster *devcluster.Cluster

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(clustertest.Main(m, clustertest.Options{
		FastPings: true,
		Begin: func(_ context.Context, c *devcluster.Cluster) error {
			cluster = c
			return nil
		},
	}))
}

// world is one test's namespace and admin client.
type world struct {
	*testing.T
	ns     string
	cfg    *rest.Config
	client *kubernetes.Clientset
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cfg := config(t, cluster.Kubeconfig())
	w := &world{T: t, cfg: cfg, client: kubernetes.NewForConfigOrDie(cfg)}
	ns, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "controller-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.ns = ns.Name
	t.Cleanup(func() {
		if err := w.client.CoreV1().Namespaces().Delete(context.Background(), w.ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return w
}

func config(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	return cfg
}

// eventually waits until f returns nil.
func (w *world) eventually(f func() error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 3*time.Minute)
	defer cancel()
	if err := clustertest.Poll(ctx, 50*time.Millisecond, f); err != nil {
		w.Fatal(err)
	}
}

// parent writes a parent with a value.
func (w *world) parent(name, value string) {
	w.Helper()
	maps := w.client.CoreV1().ConfigMaps(w.ns)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role": "parent"}}, Data: map[string]string{"value": value}}
	_, err := maps.Update(w.Context(), m, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(w.Context(), m, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// mirrored waits until each parent has a child with the parent's value, and there are no other children.
func (w *world) mirrored() {
	w.Helper()
	w.eventually(func() error {
		all, err := w.client.CoreV1().ConfigMaps(w.ns).List(w.Context(), metav1.ListOptions{LabelSelector: "role"})
		if err != nil {
			return err
		}
		values, children := map[string]string{}, map[string]string{}
		for _, m := range all.Items {
			if m.Labels["role"] == "parent" {
				values[m.Name+"-child"] = m.Data["value"]
			} else {
				children[m.Name] = m.Data["value"]
			}
		}
		var wrong []string
		for name, value := range values {
			if children[name] != value {
				wrong = append(wrong, fmt.Sprintf("%s has %q, want %q", name, children[name], value))
			}
		}
		if len(wrong) > 0 || len(children) != len(values) {
			return fmt.Errorf("%d parents, %d children, %d are wrong: %s", len(values), len(children), len(wrong), strings.Join(wrong[:min(3, len(wrong))], "; "))
		}
		return nil
	})
}
