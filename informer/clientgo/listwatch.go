package clientgo

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Client is one resource of a client of client-go: typed, dynamic or of metadata; in one namespace or
// in all. L is its type of lists.
type Client[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// ListWatch is what an informer lists and watches by a client:
//
//	clientgo.ListWatch(client.CoreV1().Pods("shop"))
//	clientgo.ListWatch(dynamicClient.Resource(gvr))
//	clientgo.ListWatch(metadataClient.Resource(gvr).Namespace("shop"))
//
// Each of the functions tweak, in order, changes the options of every request: selectors go there. With
// a fake client, pass the result through cache.ToListWatcherWithWatchListSemantics.
func ListWatch[L runtime.Object](c Client[L], tweak ...func(*metav1.ListOptions)) *cache.ListWatch {
	tweaked := func(o metav1.ListOptions) metav1.ListOptions {
		for _, f := range tweak {
			f(&o)
		}
		return o
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.List(ctx, tweaked(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, tweaked(o))
		},
	}
}
