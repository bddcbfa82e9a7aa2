package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func trimTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	//guide:begin trim-tattler
	deployments, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"), func(o *informer.ViewOptions) {
		o.DropManagedFields = true
		o.Transform = informer.TransformOf("no containers", 1, func(d *appsv1.Deployment) error {
			d.Spec.Template.Spec.Containers = nil
			return nil
		})
	})
	//guide:end
	if err != nil {
		return err
	}
	return synced(ctx, cluster, func(context.Context) error {
		d, err := deployments.Get("shop", "web")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, len(d.ManagedFields), "managers,", len(d.Spec.Template.Spec.Containers), "containers,", *d.Spec.Replicas, "replicas")
		return nil
	})
}
