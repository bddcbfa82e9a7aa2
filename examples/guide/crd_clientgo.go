package guide

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func crdClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	//guide:begin crd-clientgo
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "shop", nil)
	widgets := factory.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Informer()
	_, err = widgets.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if w, ok := obj.(*unstructured.Unstructured); ok {
			fmt.Fprintln(out, "added", w.GetName())
		}
	}})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	some, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	fmt.Fprintln(out, "synced:", cache.WaitFor(some, "", widgets.HasSyncedChecker()))
	<-ctx.Done()
	factory.Shutdown()
	return nil
	//guide:end
}
