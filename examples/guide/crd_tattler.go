package guide

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func crdTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	//guide:begin crd-tattler
	widgets, err := informer.Unstructured(cluster,
		schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		fmt.Fprintln(out, "wait:", widgets.Wait(ctx))
		for change, err := range widgets.Changes(ctx, "printer") {
			if err != nil {
				return err
			}
			fmt.Fprintln(out, change.Op, change.Key.Name)
		}
		return nil
	})
	//guide:end
}
