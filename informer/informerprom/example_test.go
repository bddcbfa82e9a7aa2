package informerprom_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informerprom"
	"github.com/tattler-dev/tattler/informer/informertest"
)

func Example() {
	server := informertest.NewServer()
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	server.Serve(pods, "Pod")
	server.Put(pods, "shop", "web-0", nil)

	metrics := informerprom.New()
	hooks := informer.Hooks{Gap: func(s informer.Stream, g informer.Gap) { fmt.Println(s.Resource, g.Reason) }} // optional
	cluster, err := informer.NewCluster(server.Config(), informer.Options{Hooks: metrics.Hooks(hooks)})
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics.Add(cluster)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	if _, err := informer.For[*corev1.Pod](cluster); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- cluster.Run(ctx) }()
	if err := cluster.Wait(ctx); err != nil {
		fmt.Println(err)
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range families {
		if f.GetName() == "informer_objects" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	cancel()
	<-done
	// Output:
	// informer_objects 1
}
