package clientgo_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatalister"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// A factory makes one informer for each Go type, as its first caller asks. Listers and all other users of the
// factory's pods then use ours.
func ExampleEngine_factory() { //nolint:testableexamples // it needs a cluster
	ctx, config := context.Background(), &rest.Config{}

	engine, err := clientgo.New(config, clientgo.Options{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, engine.HTTPClient())
	if err != nil {
		log.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return engine.NewInformer(clientgo.ListWatch(c.CoreV1().Pods("")), &corev1.Pod{}, resync,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
	pods := factory.Core().V1().Pods().Lister()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		log.Fatal(err)
	}
	all, err := pods.Pods("shop").List(labels.Everything())
	log.Print(len(all), err)
}

// The same with a fake client.
func ExampleEngine_fake() {
	ctx, cancel := context.WithCancel(context.Background())

	engine, err := clientgo.New(nil, clientgo.Options{})
	if err != nil {
		log.Fatal(err)
	}
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return engine.NewInformer(clientgo.ListWatch(c.CoreV1().Pods("")), &corev1.Pod{}, resync,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
	pods := factory.Core().V1().Pods().Lister()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		log.Fatal(err)
	}
	all, err := pods.Pods("shop").List(labels.Everything())
	fmt.Println(len(all), err)
	cancel()
	factory.Shutdown()
	// Output: 1 <nil>
}

// The factories of dynamic and metadata clients accept no informers. Their listers accept any indexer.
func ExampleListWatch() { //nolint:testableexamples // it needs a cluster
	ctx, config := context.Background(), &rest.Config{}
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

	engine, err := clientgo.New(config, clientgo.Options{})
	if err != nil {
		log.Fatal(err)
	}
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

	dynamicClient, err := dynamic.NewForConfigAndClient(config, engine.HTTPClient())
	if err != nil {
		log.Fatal(err)
	}
	widgets := engine.NewInformer(clientgo.ListWatch(dynamicClient.Resource(gvr)), &unstructured.Unstructured{}, 0, byNamespace)
	widgetLister := dynamiclister.New(widgets.GetIndexer(), gvr)

	metadataClient, err := metadata.NewForConfigAndClient(config, engine.HTTPClient())
	if err != nil {
		log.Fatal(err)
	}
	names := engine.NewInformer(clientgo.ListWatch(metadataClient.Resource(gvr)), &metav1.PartialObjectMetadata{}, 0, byNamespace)
	nameLister := metadatalister.New(names.GetIndexer(), gvr)

	go widgets.RunWithContext(ctx)
	go names.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), widgets.HasSynced, names.HasSynced) {
		log.Fatal("not synced")
	}
	widget, err := widgetLister.Namespace("shop").Get("one")
	log.Print(widget, err)
	name, err := nameLister.Namespace("shop").Get("one")
	log.Print(name, err)
}
