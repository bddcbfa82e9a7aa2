package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func syncClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	factory, err := newFactory(cfg)
	if err != nil {
		return err
	}
	//guide:begin sync-clientgo
	deployments := factory.Apps().V1().Deployments()
	handled, err := deployments.TypedInformer().AddTypedEventHandler(appsinformers.DeploymentDetailedHandlerFuncs{
		AddFunc: func(d *appsv1.Deployment, initial bool) { fmt.Fprintln(out, d.Name, "was there:", initial) },
	})
	if err != nil {
		return err
	}
	_, err = deployments.Lister().Deployments("shop").Get("web")
	fmt.Fprintln(out, "too early:", err)

	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	if cache.WaitFor(ctx, "", handled.HasSyncedChecker()) {
		fmt.Fprintln(out, "all were handled")
	}
	<-ctx.Done()
	return nil
	//guide:end
}
