package guide

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func factoryClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	//guide:begin factory-clientgo
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("shop"))
	one := factory.Apps().V1().Deployments()
	two := factory.Apps().V1().Deployments()
	fmt.Fprintln(out, "the same:", one.Informer() == two.Informer())

	// Another selection is another factory.
	front := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("shop"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "tier=front" }))
	fronts := front.Apps().V1().Deployments()
	fronts.Informer() // what was not asked for before Start is not started

	for _, f := range []informers.SharedInformerFactory{factory, front} {
		f.StartWithContext(ctx)
		if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			return err
		}
		defer f.Shutdown()
	}
	all, err := one.Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	some, err := fronts.Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, len(all), "deployments,", len(some), "of the front")
	<-ctx.Done()
	return nil
	//guide:end
}
