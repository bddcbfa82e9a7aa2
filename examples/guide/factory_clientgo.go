package guide

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/rest"
)

func factoryClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cfg, watches := countWatches(cfg)
	//guide:begin factory-clientgo
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("shop"))
	one := factory.Apps().V1().Deployments().Lister()
	two := factory.Apps().V1().Deployments().Lister()
	// Another selection needs another factory.
	front := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("shop"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "tier=front" }))
	three := front.Apps().V1().Deployments().Lister()

	for _, f := range []informers.SharedInformerFactory{factory, front} {
		f.StartWithContext(ctx) // informers that are requested later need another Start
		defer f.Shutdown()
		if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			return err
		}
	}
	for _, lister := range []appslisters.DeploymentLister{one, two, three} {
		list, err := lister.List(labels.Everything())
		if err != nil {
			return err
		}
		fmt.Fprintln(out, len(list), "deployments")
	}
	fmt.Fprintln(out, watches.Load(), "watches")
	//guide:end
	<-ctx.Done()
	return nil
}
