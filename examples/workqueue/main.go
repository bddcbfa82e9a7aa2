// Command workqueue handles the ConfigMaps of a namespace, by a queue of keys. It is workqueue-by-hand on
// informer/controller.
package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/examples/internal/work"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

func main() {
	flags := work.NewFlags()
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, flags) })
}

func run(ctx context.Context, cfg *rest.Config, o *work.Flags) error {
	if err := o.Valid(); err != nil {
		return err
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	maps, err := informer.For[*corev1.ConfigMap](cluster, informer.InNamespaces(o.Namespace))
	if err != nil {
		return err
	}
	handle := func(_ context.Context, key controller.Key) (controller.Result, error) {
		m, err := maps.Get(key.Namespace, key.Name)
		if errors.Is(err, informer.ErrNotFound) {
			work.Gone(key.String())
			return controller.Result{}, nil
		} else if err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, work.Handle(m)
	}
	failed := func(r controller.Reconciled) {
		if r.Err != nil {
			work.Failed(r.Key.String(), r.Failures, r.Err)
		}
	}
	hooks := controller.Hooks{Synced: func() { o.Synced(maps.Len()) }, Reconciled: failed}
	return controller.Run(ctx, cluster, controller.New("configmaps", handle,
		controller.Options{Workers: o.Workers, Hooks: hooks}, controller.For(maps)))
}
