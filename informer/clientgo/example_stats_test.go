package clientgo_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// The engine's statistics show whether objects are cut out of the server's responses.
func ExampleEngine_Stats() {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	server := informertest.NewServer()
	server.Serve(pods, "Pod")
	server.Put(pods, "shop", "web-0", nil)
	server.Put(pods, "shop", "web-1", nil)
	config := server.Config()

	engine, err := clientgo.New(config, clientgo.Options{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, engine.HTTPClient())
	if err != nil {
		log.Fatal(err)
	}
	informer := engine.NewInformer(clientgo.ListWatch(client.CoreV1().Pods("")), &corev1.Pod{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		informer.RunWithContext(ctx)
		close(ended)
	}()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		log.Fatal("not synced")
	}
	for _, i := range engine.Stats().Informers {
		fmt.Printf("%s: %d objects, raw: %t, undecodable: %d\n", i.Name, i.Objects, i.Raw, i.Undecodable)
	}
	cancel()
	<-ended
	// Output: SharedIndexInformer *v1.Pod: 2 objects, raw: true, undecodable: 0
}
