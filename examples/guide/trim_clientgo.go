package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func trimClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	//guide:begin trim-clientgo
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("shop"),
		informers.WithTransform(func(obj any) (any, error) { // for every kind of the factory
			if m, err := meta.Accessor(obj); err == nil {
				m.SetManagedFields(nil)
			}
			if d, ok := obj.(*appsv1.Deployment); ok {
				d.Spec.Template.Spec.Containers = nil
			}
			return obj, nil
		}))
	//guide:end
	lister := factory.Apps().V1().Deployments().Lister()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	d, err := lister.Deployments("shop").Get("web")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, len(d.ManagedFields), "managers,", len(d.Spec.Template.Spec.Containers), "containers,", *d.Spec.Replicas, "replicas")
	<-ctx.Done()
	return nil
}
