package guide

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func listersTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, deployments, err := newCluster(cfg)
	if err != nil {
		return err
	}
	return synced(ctx, cluster, func(context.Context) error {
		//guide:begin listers-tattler
		web, err := deployments.Get("shop", "web")
		if err != nil {
			return err
		}
		all, err := informer.Collect(deployments.All())
		if err != nil {
			return err
		}
		front, err := informer.Collect(deployments.List("shop", labels.SelectorFromSet(labels.Set{"tier": "front"})))
		if err != nil {
			return err
		}
		fmt.Fprintln(out, len(front), "of", len(all), "are of the tier", web.Labels["tier"])

		web.Labels["tier"] = "oops" // no mistake: the object belongs to the caller
		again, err := deployments.Get("shop", "web")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "the next reader gets:", again.Labels["tier"])
		return nil
		//guide:end
	})
}
