package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func factoryTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	//guide:begin factory-tattler
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	one, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	two, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	fronts, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"), informer.WithLabels("tier=front"))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the same:", one.Source() == two.Source())
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.WaitForSync(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, one.Len(), "deployments,", fronts.Len(), "of the front")
		return nil
	})
	//guide:end
}
