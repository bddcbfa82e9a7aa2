package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/rest"
)

func handlersClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	factory, err := newFactory(cfg)
	if err != nil {
		return err
	}
	//guide:begin handlers-clientgo
	deployments := factory.Apps().V1().Deployments().TypedInformer()
	_, err = deployments.AddTypedEventHandler(appsinformers.DeploymentHandlerFuncs{
		AddFunc: func(d *appsv1.Deployment) {
			fmt.Fprintln(out, "add", d.Name)
		},
		UpdateFunc: func(old, d *appsv1.Deployment) {
			fmt.Fprintln(out, "update", d.Name, *old.Spec.Replicas, "->", *d.Spec.Replicas)
		},
		DeleteFunc: func(last appsinformers.DeletedDeployment) {
			// If the deletion was missed, last.OptionalObj is old, and may be nil.
			fmt.Fprintln(out, "delete", last.GetName())
		},
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
	return nil
	//guide:end
}
