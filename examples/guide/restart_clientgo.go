package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/rest"
)

func restartClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	factory, err := newFactory(cfg)
	if err != nil {
		return err
	}
	//guide:begin restart-clientgo
	_, err = factory.Apps().V1().Deployments().TypedInformer().AddTypedEventHandler(appsinformers.DeploymentHandlerFuncs{
		AddFunc:    func(d *appsv1.Deployment) { fmt.Fprintln(out, "added", d.Name) },
		UpdateFunc: func(_, d *appsv1.Deployment) { fmt.Fprintln(out, "updated", d.Name) },
		DeleteFunc: func(d appsinformers.DeletedDeployment) { fmt.Fprintln(out, "deleted", d.GetName()) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
	fmt.Fprintln(out, "stopped")
	return nil
	//guide:end
}
