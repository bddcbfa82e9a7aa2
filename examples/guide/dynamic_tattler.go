package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func dynamicTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	//guide:begin dynamic-tattler
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	deployments, err := informer.Unstructured(cluster, appsv1.SchemeGroupVersion.WithResource("deployments"), informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil {
			return err
		}
		d, err := deployments.Get("shop", "web")
		if err != nil {
			return err
		}
		replicas, _, err := unstructured.NestedInt64(d.Object, "spec", "replicas")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, d.GetKind(), d.GetName(), replicas)
		return nil
	})
	//guide:end
}
