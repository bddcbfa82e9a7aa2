package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func syncTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, deployments, err := newCluster(cfg)
	if err != nil {
		return err
	}
	//guide:begin sync-tattler
	changes, err := deployments.Subscribe("printer", informer.SubscribeOptions{})
	if err != nil {
		return err
	}
	_, err = deployments.Get("shop", "web")
	fmt.Fprintln(out, "too early:", err)

	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil {
			return err
		}
		return changes.Handle(ctx, informer.Handlers[*appsv1.Deployment]{
			OnAdd:    func(d *appsv1.Deployment, initial bool) { fmt.Fprintln(out, d.Name, "was there:", initial) },
			OnSynced: func() { fmt.Fprintln(out, "all were handled") },
		})
	})
	//guide:end
}
