package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

// ours is the controller on informer/controller.
func ours(cfg *rest.Config, c *counts) (*program, error) {
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return nil, fmt.Errorf("make a cluster: %w", err)
	}
	pods, err := informer.For[*corev1.Pod](cluster)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	index := informer.AddIndex(pods, byGroup, func(p *corev1.Pod) []string { return []string{group(p)} })
	ctl := controller.New("pods", func(_ context.Context, key controller.Key) (controller.Result, error) {
		pod, err := pods.Get(key.Namespace, key.Name)
		if err != nil {
			return controller.Result{}, controller.IgnoreGone(err)
		}
		n := 0
		for _, err := range index.Get(group(pod)) {
			if err != nil {
				return controller.Result{}, err
			}
			n++
		}
		return controller.Result{}, c.reconciled(pod, n)
	}, controller.Options{Workers: workers}, controller.For(pods))
	return &program{
		run:    func(ctx context.Context) error { return controller.Run(ctx, cluster, ctl) },
		synced: pods.Wait,
		list: func() (names []types.NamespacedName, err error) {
			for key, err := range pods.Keys() {
				if err != nil {
					return nil, err
				}
				names = append(names, types.NamespacedName(key))
			}
			return names, nil
		},
	}, nil
}
