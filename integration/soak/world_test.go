package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

var (
	podResource    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgetResource = schema.GroupVersionResource{Group: "soak.tattler.dev", Version: "v1", Resource: "widgets"}

	namespaces = []string{"soak-0", "soak-1", "soak-2", "soak-3"}
)

const (
	writers = 16
	// widgetShare is the number of pods per custom resource.
	widgetShare = 8
	crd         = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"widgets.soak.tattler.dev"},
		"spec":{"group":"soak.tattler.dev","scope":"Namespaced",
			"names":{"kind":"Widget","listKind":"WidgetList","plural":"widgets","singular":"widget"},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
				{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
)

// world is a control plane full of objects, and a record of all writes to it. It writes only pods and widgets.
type world struct {
	*devcluster.Cluster
	size   int // pods
	seed   uint64
	cfg    *rest.Config
	client *kubernetes.Clientset
	dyn    dynamic.Interface
	meta   metadata.Interface
	ledger *ledger
	left   time.Time // when a cluster with a checkpoint ended
}

func newWorld(ctx context.Context, c *devcluster.Cluster, size int, seed uint64) (*world, error) {
	began := time.Now()
	w := &world{Cluster: c, size: size, seed: seed, ledger: newLedger()}
	if err := errors.Join(w.connect(), w.prepare(ctx), w.fill(ctx)); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "soak: the control plane is full after %v\n", time.Since(began).Round(time.Second))
	return w, nil
}

func (w *world) connect() (err error) {
	if w.cfg, err = clientcmd.BuildConfigFromFlags("", w.Kubeconfig()); err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	w.cfg.QPS = -1
	var errs [3]error
	w.client, errs[0] = kubernetes.NewForConfig(w.cfg)
	w.dyn, errs[1] = dynamic.NewForConfig(w.cfg)
	w.meta, errs[2] = metadata.NewForConfig(w.cfg)
	return errors.Join(errs[:]...)
}

// long reports whether this is a long run.
func (w *world) long() bool { return w.size > 5000 }

// config is an informer's connection to the server; either argument may be nil.
func (w *world) config(l *line, r *requests) *rest.Config {
	cfg := rest.CopyConfig(w.cfg)
	if l != nil {
		cfg.Dial = l.DialContext
	}
	if r != nil {
		cfg.Wrap(r.wrap)
	}
	return cfg
}

// prepare creates the namespaces and the kind Widget.
func (w *world) prepare(ctx context.Context) error {
	for _, ns := range namespaces {
		body := fmt.Sprintf(`{"metadata":{"name":%q}}`, ns)
		if _, err := w.send(ctx, "POST", "/api/v1/namespaces", "", []byte(body)); err != nil {
			return fmt.Errorf("create namespace: %w", err)
		}
	}
	if _, err := w.send(ctx, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", []byte(crd)); err != nil {
		return fmt.Errorf("create kind: %w", err)
	}
	return clustertest.Poll(ctx, 50*time.Millisecond, func() error {
		_, err := w.dyn.Resource(widgetResource).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// fill creates the objects; every second pod gets a status, as from a kubelet.
func (w *world) fill(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for i := range writers {
		h := &hand{world: w, rng: rand.New(rand.NewPCG(w.seed, uint64(1000+i)))}
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < w.size && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				err := h.create(ctx, w.pod(n))
				if err == nil && n%2 == 0 {
					err = h.status(ctx, w.pod(n))
				}
				if err == nil && n%widgetShare == 0 {
					err = h.create(ctx, w.widget(n/widgetShare))
				}
				if err != nil {
					cancel(fmt.Errorf("fill the control plane: %w", err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// pod names the nth pod, widget the nth custom resource.
func (w *world) pod(n int) object { return named("pods", "pod", n) }

func (w *world) widget(n int) object { return named("widgets", "widget", n) }

func named(resource, prefix string, n int) object {
	o := object{resource: resource}
	o.Namespace, o.Name = namespaces[n%len(namespaces)], fmt.Sprintf("%s-%05d", prefix, n)
	return o
}

// path returns the path of an object, or, with an empty name, of its collection. Without a namespace, it is the
// collection over all namespaces.
func path(o object, name string) string {
	p := "/api/v1"
	if o.resource == "widgets" {
		p = "/apis/soak.tattler.dev/v1"
	}
	if o.Namespace != "" {
		p += "/namespaces/" + o.Namespace
	}
	return strings.TrimSuffix(p+"/"+o.resource+"/"+name, "/")
}

// send sends JSON once, without retries, so that a response belongs to this very request.
func (w *world) send(ctx context.Context, verb, path, contentType string, body []byte) ([]byte, error) {
	if contentType == "" {
		contentType = "application/json"
	}
	return w.client.CoreV1().RESTClient().Verb(verb).AbsPath(path).SetHeader("Content-Type", contentType).
		Body(body).MaxRetries(0).Timeout(time.Minute).Do(ctx).Raw()
}

// restartAPIServer kills the API server, or stops it as a rolling update does, and starts it again.
func (w *world) restartAPIServer(ctx context.Context, orderly bool) error {
	end := w.KillAPIServer
	if orderly {
		end = func() error { return w.StopAPIServer(ctx) }
	}
	return errors.Join(end(), w.StartAPIServer(ctx))
}

// forget compacts the server's history up to now: older watches get a 410.
func (w *world) forget(ctx context.Context) error {
	return errors.Join(w.Compact(ctx), w.restartAPIServer(ctx, false))
}

// restartEtcd kills etcd and starts it again. In between it copies etcd's files to dir if that is not empty.
func (w *world) restartEtcd(ctx context.Context, dir string) error {
	err := w.KillEtcd()
	if err == nil && dir != "" {
		err = os.CopyFS(dir, os.DirFS(w.etcd()))
	}
	return errors.Join(err, w.StartEtcd(ctx))
}

// restore restores the files that restartEtcd copied, like a backup.
func (w *world) restore(ctx context.Context, dir string) error {
	if err := errors.Join(w.KillAPIServer(), w.KillEtcd(), os.RemoveAll(w.etcd())); err != nil {
		return err
	}
	return errors.Join(os.CopyFS(w.etcd(), os.DirFS(dir)), os.Chmod(w.etcd(), 0o700),
		w.StartEtcd(ctx), w.StartAPIServer(ctx))
}

func (w *world) etcd() string { return filepath.Join(w.Dir(), "etcd") }

// version returns the server's version.
func (w *world) version(ctx context.Context) (string, error) {
	list, err := w.meta.Resource(podResource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}
