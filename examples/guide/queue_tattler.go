package guide

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

func queueTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, deployments, err := newCluster(cfg)
	if err != nil {
		return err
	}
	tries := 0
	//guide:begin queue-tattler
	reconcile := func(_ context.Context, key controller.Key) (controller.Result, error) {
		d, err := deployments.Get(key.Namespace, key.Name)
		if errors.Is(err, informer.ErrNotFound) {
			fmt.Fprintln(out, key, "is gone")
			return controller.Result{}, nil
		}
		if err != nil {
			return controller.Result{}, err
		}
		if tries++; tries == 1 {
			return controller.Result{}, errors.New("not now")
		}
		fmt.Fprintln(out, key, "has", *d.Spec.Replicas, "replicas")
		return controller.Result{}, nil
	}
	failed := func(r controller.Reconciled) {
		if r.Err != nil { // errors are logged in any case
			fmt.Fprintln(out, r.Key, "failed:", r.Err)
		}
	}
	return controller.Run(ctx, cluster, controller.New("replicas", reconcile,
		controller.Options{Workers: 1, Hooks: controller.Hooks{Reconciled: failed}}, controller.For(deployments)))
	//guide:end
}
