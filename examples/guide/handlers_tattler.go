package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func handlersTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, deployments, err := newCluster(cfg)
	if err != nil {
		return err
	}
	//guide:begin handlers-tattler
	changes, err := deployments.Subscribe("printer", informer.SubscribeOptions{})
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		return changes.Handle(ctx, informer.Handlers[*appsv1.Deployment]{
			OnAdd: func(d *appsv1.Deployment, _ bool) {
				fmt.Fprintln(out, "add", d.Name)
			},
			OnUpdate: func(old, d *appsv1.Deployment) {
				fmt.Fprintln(out, "update", d.Name, *old.Spec.Replicas, "->", *d.Spec.Replicas)
			},
			OnDelete: func(last *appsv1.Deployment) {
				fmt.Fprintln(out, "delete", last.Name)
			},
		})
	})
	//guide:end
}
