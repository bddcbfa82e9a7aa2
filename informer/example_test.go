package informer_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// podIPs is the examples' index function.
func podIPs(p *corev1.Pod) []string {
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

// shop is an API server with three pods, and a config to reach it.
func shop() (*informertest.Server, *rest.Config) {
	server := informertest.NewServer()
	server.Serve(pods, "Pod")
	for i, name := range []string{"web-0", "web-1", "db-0"} {
		server.Put(pods, "shop", name, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": name[:len(name)-2]}},
			"status":   map[string]any{"podIPs": []any{map[string]any{"ip": fmt.Sprintf("10.0.0.%d", 7+i)}}},
		})
	}
	return server, server.Config()
}

// start runs a cluster until the example ends, and waits until it is synced.
func start(cl *informer.Cluster) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- cl.Run(ctx) }()
	if err := cl.Wait(ctx); err != nil {
		fmt.Println(err)
	}
	return func() {
		cancel()
		<-done
	}
}

func ExampleFor() {
	_, cfg := shop()
	cl, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods, err := informer.For[*corev1.Pod](cl, informer.InNamespaces("shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer start(cl)()

	pod, err := pods.Get("shop", "web-0")
	if err != nil { // ErrNotFound, or why it cannot be decoded
		fmt.Println(err)
		return
	}
	fmt.Println(pod.Name, pod.Labels["app"])

	selector, _ := labels.Parse("app=web")
	var names []string
	for p, err := range pods.List("shop", selector) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		names = append(names, p.Name)
	}
	slices.Sort(names)
	fmt.Println(names, "of", pods.Len())
	// Output:
	// web-0 web
	// [web-0 web-1] of 3
}

func ExampleAddIndex() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	pods, _ := informer.For[*corev1.Pod](cl)
	byIP := informer.AddIndex(pods, "ip", podIPs)
	defer start(cl)()

	for p, err := range byIP.Get("10.0.0.7") {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p.Name)
	}
	for p, err := range byIP.In("elsewhere", "10.0.0.7") { // a namespace without pods
		fmt.Println(p, err)
	}
	// Output: web-0
}

func ExampleAddFieldIndex() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	pods, _ := informer.For[*corev1.Pod](cl)
	byIP, err := informer.AddFieldIndex(pods, "status.podIPs[*].ip")
	if err != nil { // a Pod has no such path
		fmt.Println(err)
		return
	}
	defer start(cl)()

	for p, err := range byIP.Get("10.0.0.7") {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p.Name)
	}
	// Output: web-0
}

func ExampleInformer_Changes() {
	server, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	all, _ := informer.For[*corev1.Pod](cl)
	defer start(cl)()

	for c, err := range all.Changes(context.Background(), "printer") {
		switch {
		case err != nil: // the loop's end
			fmt.Println(err)
		case c.Initial && c.Key.Name == "db-0":
			server.Delete(pods, "shop", "db-0")
		case c.Op == informer.Deleted:
			last, err := c.Old()
			fmt.Println(c.Op, c.Key.Name, last.Labels["app"], err)
			return
		}
	}
	// Output: deleted db-0 db <nil>
}

func ExampleSubscription_Handle() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	pods, _ := informer.For[*corev1.Pod](cl)
	defer start(cl)()

	s, _ := pods.Subscribe("handlers", informer.SubscribeOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	var names []string
	_ = s.Handle(ctx, informer.Handlers[*corev1.Pod]{
		OnAdd:    func(p *corev1.Pod, initial bool) { names = append(names, fmt.Sprint(p.Name, " ", initial)) },
		OnSynced: cancel,
	})
	slices.Sort(names)
	fmt.Println(names)
	// Output: [db-0 true web-0 true web-1 true]
}

func ExampleUnstructured() {
	server, cfg := shop()
	server.Serve(widgets, "Widget")
	server.Put(widgets, "shop", "left", map[string]any{"spec": map[string]any{"size": 3}})
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	all, _ := informer.Unstructured(cl, widgets)
	defer start(cl)()

	w, err := all.Get("shop", "left")
	fmt.Println(err, w.GetKind(), w.Object["spec"])
	// Output: <nil> Widget map[size:3]
}

func ExampleMetadata() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	all, _ := informer.Metadata(cl, pods)
	defer start(cl)()

	m, err := all.Get("shop", "db-0")
	fmt.Println(err, m.Name, m.Labels)
	// Output: <nil> db-0 map[app:db]
}

func ExampleInformer_Shared() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	pods, _ := informer.For[*corev1.Pod](cl)
	defer start(cl)()

	a, _ := pods.Shared().Get("shop", "web-0")
	b, _ := pods.Shared().Get("shop", "web-0")
	c, _ := pods.Get("shop", "web-0")
	fmt.Println(a == b, a == c)
	// Output: true false
}

func ExampleTransformOf() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	pods, _ := informer.For[*corev1.Pod](cl, func(o *informer.ViewOptions) {
		o.Transform = informer.TransformOf("no status", 1, func(p *corev1.Pod) error {
			p.Status = corev1.PodStatus{}
			return nil
		})
	})
	defer start(cl)()

	p, _ := pods.Get("shop", "web-0")
	fmt.Println(p.Name, len(p.Status.PodIPs))
	// Output: web-0 0
}

// names is a user's store: it keeps the names of pods.
type names map[informer.Key]string

func (n names) Reset(context.Context) error { clear(n); return nil }

func (n names) Put(_ context.Context, k informer.Key, p *corev1.Pod) error {
	n[k] = p.Name
	return nil
}

func (n names) Delete(_ context.Context, k informer.Key) error { delete(n, k); return nil }

func (n names) Version(_ context.Context, _ informer.Stream, _ string) error {
	return fmt.Errorf("%d pods: that is enough", len(n))
}

func ExampleInformer_Mirror() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	pods, _ := informer.For[*corev1.Pod](cl)
	defer start(cl)()

	err := pods.Mirror(context.Background(), "names", names{})
	fmt.Println(err != nil && len(err.Error()) > 0)
	// Output: true
}

func ExampleOn() {
	_, cfg := shop()
	cl, _ := informer.NewCluster(cfg, informer.Options{})
	source, _ := cl.Source(pods, informer.SourceOptions{DropManagedFields: true})
	typed, err := informer.For[*corev1.Pod](cl, informer.On(source))
	fmt.Println(err)
	maps, err := informer.Unstructured(cl, pods, informer.On(source))
	fmt.Println(err)
	defer start(cl)()

	p, _ := typed.Get("shop", "web-0")
	u, _ := maps.Get("shop", "web-0")
	fmt.Println(p.UID == u.GetUID())
	// Output:
	// <nil>
	// <nil>
	// true
}
