package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
)

func dynamicClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	//guide:begin dynamic-clientgo
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "shop", nil)
	deployments := factory.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments"))
	deployments.Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())

	obj, err := deployments.Lister().ByNamespace("shop").Get("web")
	if err != nil {
		return err
	}
	d, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("it is a %T", obj)
	}
	replicas, _, err := unstructured.NestedInt64(d.Object, "spec", "replicas")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, d.GetKind(), d.GetName(), replicas)
	<-ctx.Done()
	return nil
	//guide:end
}
