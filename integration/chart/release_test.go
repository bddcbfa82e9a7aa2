package chart

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	patience    = 3 * time.Minute
	releaseName = "tattler"
)

// helm manages the release named tattler in a namespace that enforces restricted Pod Security.
type helm struct {
	namespace string
	config    *action.Configuration
	client    *kubernetes.Clientset
}

func newHelm(t *testing.T, name string) *helm {
	t.Helper()
	h := connect(t, unique(name))
	_, err := h.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: h.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// unique returns a namespace that no earlier run of a test used: claims in it remain.
func unique(name string) string { return fmt.Sprintf("%s-%d", name, runs.Add(1)) }

var runs atomic.Int64

// connect is newHelm for a namespace that exists.
func connect(t *testing.T, namespace string) *helm {
	t.Helper()
	client, err := kubernetes.NewForConfig(restConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := cluster.Kubeconfig()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	c := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := c.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return &helm{namespace, c, client}
}

func restConfig(t *testing.T) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

// values reads values, in which CLASS is the storage class of the namespace.
func (h *helm) values(t *testing.T, text string) map[string]any {
	t.Helper()
	return values(t, strings.ReplaceAll(text, "CLASS", h.namespace))
}

func (h *helm) install(t *testing.T, c *chartv2.Chart, text string) *release.Release {
	t.Helper()
	i := action.NewInstall(h.config)
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = releaseName, h.namespace, kube.HookOnlyStrategy, patience
	r, err := i.RunWithContext(t.Context(), c, h.values(t, text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.uninstall(t) })
	return r.(*release.Release)
}

func (h *helm) upgrade(t *testing.T, c *chartv2.Chart, text string) *release.Release {
	t.Helper()
	u := action.NewUpgrade(h.config)
	u.Namespace, u.WaitStrategy, u.Timeout, u.ServerSideApply = h.namespace, kube.HookOnlyStrategy, patience, "auto"
	r, err := u.RunWithContext(t.Context(), releaseName, c, h.values(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return r.(*release.Release)
}

func (h *helm) rollback(t *testing.T, revision int) {
	t.Helper()
	r := action.NewRollback(h.config)
	r.Version, r.WaitStrategy, r.Timeout, r.ServerSideApply = revision, kube.HookOnlyStrategy, patience, "auto"
	if err := r.Run(releaseName); err != nil {
		t.Fatal(err)
	}
}

func (h *helm) uninstall(t *testing.T) {
	t.Helper()
	u := action.NewUninstall(h.config)
	u.IgnoreNotFound, u.WaitStrategy, u.Timeout = true, kube.HookOnlyStrategy, patience
	if _, err := u.Run(releaseName); err != nil {
		t.Error(err)
	}
}

// kubectl runs kubectl as the administrator.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// poll calls f until it returns no error.
func poll(t *testing.T, what string, f func(ctx context.Context) error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; {
		err := f(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}
