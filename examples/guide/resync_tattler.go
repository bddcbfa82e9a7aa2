package guide

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/controller"
)

func resyncTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, deployments, err := newCluster(cfg)
	if err != nil {
		return err
	}
	//guide:begin resync-tattler
	check := func(_ context.Context, key controller.Key) (controller.Result, error) {
		d, err := deployments.Get(key.Namespace, key.Name)
		if err != nil {
			return controller.Result{}, controller.IgnoreGone(err)
		}
		fmt.Fprintln(out, "check", d.Name)
		return controller.Result{RequeueAfter: time.Second}, nil
	}
	return controller.Run(ctx, cluster, controller.New("check", check, controller.Options{}, controller.For(deployments)))
	//guide:end
}
