package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/bench/fill"
	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/devcluster"
)

// workloads are the manifests of programs with pods.
var workloads = []string{"web.yaml", "workers.yaml", "stateful.yaml", "batch.yaml"}

// recorder plays the people and the kubelets of a cluster.
type recorder struct {
	cluster         *devcluster.Cluster
	dir             string
	kubelet         *kubernetes.Clientset
	owner, operator dynamic.Interface
	pods            map[string][]string // names of the pods in each state, by the name of their owner
	expected        int                 // number of pods
}

func newRecorder(c *devcluster.Cluster, cfg *rest.Config, dir string) (*recorder, error) {
	r := &recorder{cluster: c, dir: dir, pods: map[string][]string{}}
	as := func(userAgent string) *rest.Config {
		cfg := rest.CopyConfig(cfg)
		cfg.UserAgent, cfg.QPS = userAgent, -1
		return cfg
	}
	var errs [3]error
	r.kubelet, errs[0] = kubernetes.NewForConfig(as("kubelet/" + devcluster.KubernetesVersion))
	r.owner, errs[1] = dynamic.NewForConfig(as("kubectl/" + devcluster.KubernetesVersion))
	r.operator, errs[2] = dynamic.NewForConfig(as("widget-operator/v1.4.0"))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("make clients: %w", err)
	}
	return r, nil
}

func (r *recorder) record(ctx context.Context) (*gen.Corpus, error) {
	nodes, err := r.nodes(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.environment(ctx); err != nil {
		return nil, err
	}
	args := []string{"apply"}
	for _, name := range append([]string{"widget-crd.yaml"}, workloads...) {
		args = append(args, "-f", filepath.Join(r.dir, name))
	}
	if _, err := r.cluster.Kubectl(ctx, args...); err != nil {
		return nil, err
	}
	c := &gen.Corpus{Kubernetes: devcluster.KubernetesVersion}
	if c.Widgets, err = r.widgets(ctx); err != nil {
		return nil, err
	}
	if err := r.until(ctx, nodes, func() (bool, error) { return r.report(ctx) }); err != nil {
		return nil, fmt.Errorf("report pods: %w", err)
	}
	if c.Workloads, err = r.collect(ctx); err != nil {
		return nil, err
	}
	crds, err := read(filepath.Join(r.dir, "widget-crd.yaml"))
	if err != nil {
		return nil, err
	}
	c.WidgetDefinition = crds[0]
	c.Node, err = r.owner.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).Get(ctx, nodes[0].Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read node: %w", err)
	}
	return c, nil
}

// until calls done every second until it returns true. Meanwhile the kubelets renew their leases.
func (r *recorder) until(ctx context.Context, nodes []*corev1.Node, done func() (bool, error)) error {
	for {
		for _, n := range nodes {
			if err := r.renew(ctx, n.Name); err != nil {
				return err
			}
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// environment makes the namespaces, service accounts and volumes of the manifests.
func (r *recorder) environment(ctx context.Context) error {
	core := r.kubelet.CoreV1()
	for i := range 8 {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("disk-", i)}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: fmt.Sprint("/disks/", i)}},
		}}
		if _, err := core.PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create volume: %w", err)
		}
	}
	for _, file := range workloads {
		objects, err := read(filepath.Join(r.dir, file))
		if err != nil {
			return err
		}
		for _, o := range objects {
			r.expected += podsOf(o)
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace()}}
			if _, err := core.Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create namespace: %w", err)
			}
			name, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
			if name == "" {
				continue
			}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if _, err := core.ServiceAccounts(ns.Name).Create(ctx, account, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create service account: %w", err)
			}
		}
	}
	return nil
}

// podsOf is the number of pods of a workload. A DaemonSet has one on each node.
func podsOf(o *unstructured.Unstructured) int {
	for _, field := range []string{"replicas", "completions"} {
		if n, ok, _ := unstructured.NestedInt64(o.Object, "spec", field); ok {
			return int(n)
		}
	}
	return nodeCount
}

// report writes the status of each bound pod that has none. It returns true when each workload has a pod in each state.
func (r *recorder) report(ctx context.Context) (bool, error) {
	list, err := r.kubelet.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list pods: %w", err)
	}
	waiting := 0
	for _, p := range list.Items {
		owner := p.OwnerReferences[0]
		switch {
		case p.Spec.NodeName == "":
			waiting++
		case len(p.Status.ContainerStatuses) == 0:
			s := state(len(r.pods[owner.Name]))
			if err := fill.Report(ctx, r.kubelet, &p, statusOf(&p, s)); err != nil {
				return false, err
			}
			r.pods[owner.Name] = append(r.pods[owner.Name], p.Name)
			waiting++ // until the controllers have seen it
		case p.Status.Phase == corev1.PodSucceeded && len(p.Finalizers) > 0:
			waiting++
		}
	}
	fmt.Fprintf(os.Stderr, "corpus: %d pods, %d not ready to be recorded\n", len(list.Items), waiting)
	return waiting == 0 && len(list.Items) == r.expected, nil
}

// collect reads the pods, ordered by owner and state.
func (r *recorder) collect(ctx context.Context) ([]gen.Workload, error) {
	list, err := r.owner.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	byOwner := map[string]*gen.Workload{}
	for i := range list.Items {
		p := &list.Items[i]
		owner := p.GetOwnerReferences()[0]
		w := byOwner[owner.Name]
		if w == nil {
			w = &gen.Workload{Pods: make([]*unstructured.Unstructured, len(r.pods[owner.Name]))}
			byOwner[owner.Name] = w
		}
		w.Pods[slices.Index(r.pods[owner.Name], p.GetName())] = p
	}
	var all []gen.Workload
	for _, file := range workloads {
		objects, err := read(filepath.Join(r.dir, file))
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			for owner, w := range byOwner {
				if owner == o.GetName() || o.GetKind() == "Deployment" && len(owner) > len(o.GetName()) && owner[:len(o.GetName())+1] == o.GetName()+"-" {
					w.Name = o.GetName()
					all = append(all, *w)
				}
			}
		}
	}
	return all, nil
}

// widgets creates the custom resources as their owner and reports on them as their operator.
func (r *recorder) widgets(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objects, err := read(filepath.Join(r.dir, "widgets.yaml"))
	if err != nil {
		return nil, err
	}
	for i, o := range objects {
		status := o.Object["status"]
		delete(o.Object, "status")
		var created *unstructured.Unstructured
		err := r.until(ctx, nil, func() (bool, error) {
			var err error
			created, err = r.owner.Resource(gen.Widgets).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
			return err == nil, ignoreNotFound(err)
		})
		if err != nil {
			return nil, fmt.Errorf("create widget: %w", err)
		}
		created.Object["status"] = status
		if objects[i], err = r.operator.Resource(gen.Widgets).Namespace(o.GetNamespace()).UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("report widget: %w", err)
		}
	}
	return objects, nil
}

// ignoreNotFound returns nil for the error of a server that does not serve the kind yet.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// read reads the objects of a manifest.
func read(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var list []*unstructured.Unstructured
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		b, err := yaml.ToJSON(part)
		if err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", path, err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(b); err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", path, err)
		}
		list = append(list, u)
	}
	return list, nil
}
