package guide

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

func listersClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	factory, err := newFactory(cfg)
	if err != nil {
		return err
	}
	lister := factory.Apps().V1().Deployments().Lister()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	//guide:begin listers-clientgo
	web, err := lister.Deployments("shop").Get("web")
	if err != nil {
		return err
	}
	all, err := lister.List(labels.Everything())
	if err != nil {
		return err
	}
	front, err := lister.Deployments("shop").List(labels.SelectorFromSet(labels.Set{"tier": "front"}))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, len(front), "of", len(all), "are of the tier", web.Labels["tier"])

	web.Labels["tier"] = "oops" // a mistake: the object belongs to the cache
	again, err := lister.Deployments("shop").Get("web")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the next reader gets:", again.Labels["tier"])
	//guide:end
	<-ctx.Done()
	return nil
}
