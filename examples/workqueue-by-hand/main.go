// Command workqueue-by-hand handles the ConfigMaps of a namespace, by a queue of keys. It is made of client-go's parts,
// as its tutorials put them together, and it is here to be compared with workqueue.
package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/examples/internal/work"
)

// retries is after how many failures a key is dropped, until its object changes.
const retries = 5

func main() {
	flags := work.NewFlags()
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, flags) })
}

func run(ctx context.Context, cfg *rest.Config, o *work.Flags) error {
	if err := o.Valid(); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(o.Namespace))
	maps := factory.Core().V1().ConfigMaps()
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "configmaps"})

	// A deletion may come as a DeletedFinalStateUnknown, which not every key function knows.
	add := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	handler, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }, DeleteFunc: add,
	})
	if err != nil {
		return err
	}
	// Without this, a right that is missing is a line in the log now and then, and the program waits for ever.
	err = maps.Informer().SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if !handler.HasSynced() && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
			fail(err)
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		return err
	}

	// The program ends in this order: the queue, the workers, the informers.
	defer factory.Shutdown()
	defer fail(nil)
	factory.StartWithContext(running)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer queue.ShutDown()
	// Until then, objects that the lister does not have may exist.
	if !cache.WaitForCacheSync(running.Done(), handler.HasSynced) {
		if cause := context.Cause(running); !errors.Is(cause, context.Canceled) {
			return cause
		}
		return nil
	}
	o.Synced(len(maps.Informer().GetStore().ListKeys()))
	for range o.Workers {
		workers.Go(func() {
			for next(queue, maps.Lister()) {
			}
		})
	}
	<-running.Done()
	return nil
}

// next handles a key, and reports whether there may be more.
func next(queue workqueue.TypedRateLimitingInterface[string], maps listers.ConfigMapLister) bool {
	key, ended := queue.Get()
	if ended {
		return false
	}
	defer queue.Done(key) // or the key never comes again
	err := handle(maps, key)
	if err == nil {
		queue.Forget(key) // or its next failure waits as long as its last
		return true
	}
	work.Failed(key, queue.NumRequeues(key)+1, err)
	if queue.NumRequeues(key) >= retries {
		queue.Forget(key)
		work.Dropped(key)
		return true
	}
	queue.AddRateLimited(key)
	return true
}

func handle(maps listers.ConfigMapLister, key string) (err error) {
	defer func() { // or one bad object ends the program
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	m, err := maps.ConfigMaps(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		work.Gone(key)
		return nil
	} else if err != nil {
		return err
	}
	return work.Handle(m) // what changes it must take a DeepCopy first: it is the cache's
}
