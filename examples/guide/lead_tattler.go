package guide

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tattler-dev/tattler/informer/controller"
)

func leadTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	return eachName(ctx, func(ctx context.Context, name string, stop func()) error {
		cluster, deployments, err := newCluster(cfg)
		if err != nil {
			return err
		}
		reconcile := func(_ context.Context, key controller.Key) (controller.Result, error) {
			fmt.Fprintln(out, name, "reconciles", key)
			stop()
			return controller.Result{}, nil
		}
		//guide:begin lead-tattler
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "replicas"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		return controller.Run(ctx, cluster,
			controller.New("replicas", reconcile, controller.Options{Lock: lock}, controller.For(deployments)))
		//guide:end
	})
}
