package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

//guide:begin mirror-type-clientgo

// table is a cache.ReflectorStore.
type table struct{ out io.Writer }

func (t table) Add(obj any) error    { return t.put(obj) }
func (t table) Update(obj any) error { return t.put(obj) }

func (t table) put(obj any) error {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return fmt.Errorf("got a %T", obj)
	}
	fmt.Fprintln(t.out, "put", d.Name, *d.Spec.Replicas)
	return nil
}

func (t table) Delete(obj any) error {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return err
	}
	fmt.Fprintln(t.out, "delete", key.Name)
	return nil
}

func (t table) Replace(all []any, _ string) error {
	fmt.Fprintln(t.out, "empty the table")
	for _, obj := range all {
		if err := t.put(obj); err != nil {
			return err
		}
	}
	return nil
}

func (t table) Resync() error { return nil }

//guide:end

func mirrorClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	//guide:begin mirror-clientgo
	deployments := client.AppsV1().Deployments("shop")
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return deployments.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return deployments.Watch(ctx, o)
		},
	}, client)
	cache.NewReflectorWithOptions(lw, &appsv1.Deployment{}, table{out}, cache.ReflectorOptions{}).RunWithContext(ctx)
	return nil
	//guide:end
}
