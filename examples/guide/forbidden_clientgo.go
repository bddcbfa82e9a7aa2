package guide

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func forbiddenClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	factory, err := newFactory(cfg)
	if err != nil {
		return err
	}
	//guide:begin forbidden-clientgo
	deployments := factory.Apps().V1().Deployments().Informer()
	var once sync.Once
	err = deployments.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		once.Do(func() { fmt.Fprintln(out, "reflector:", err) }) // the error comes again and again
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	some, cancel := context.WithTimeout(ctx, 15*time.Second) // otherwise the wait never ends
	defer cancel()
	err = factory.WaitForCacheSyncWithContext(some).AsError()
	fmt.Fprintln(out, "wait:", err)
	//guide:end
	<-ctx.Done()
	factory.Shutdown()
	return nil
}
