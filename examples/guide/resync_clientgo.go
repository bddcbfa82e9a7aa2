package guide

import (
	"context"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func resyncClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	//guide:begin resync-clientgo
	factory := informers.NewSharedInformerFactoryWithOptions(client, time.Second, informers.WithNamespace("shop"))
	_, err = factory.Apps().V1().Deployments().TypedInformer().AddTypedEventHandler(appsinformers.DeploymentHandlerFuncs{
		UpdateFunc: func(old, d *appsv1.Deployment) {
			fmt.Fprintln(out, "check", d.Name, "changed:", old.ResourceVersion != d.ResourceVersion)
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
