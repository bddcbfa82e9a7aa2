package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func watchTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	//guide:begin watch-tattler
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	deployments, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		for change, err := range deployments.Changes(ctx, "printer") {
			if err != nil {
				return err // usually ctx's error
			}
			fmt.Fprintln(out, change.Op, change.Key.Name)
		}
		return nil
	})
	//guide:end
}
