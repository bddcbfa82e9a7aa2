package guide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func queueClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	factory, err := newFactory(cfg)
	if err != nil {
		return err
	}
	tries := 0
	//guide:begin queue-clientgo
	deployments := factory.Apps().V1().Deployments()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			queue.Add(key)
		}
	}
	handled, err := deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: enqueue,
	})
	if err != nil {
		return err
	}
	reconcile := func(key cache.ObjectName) error {
		d, err := deployments.Lister().Deployments(key.Namespace).Get(key.Name)
		if apierrors.IsNotFound(err) {
			fmt.Fprintln(out, key, "is gone")
			return nil
		}
		if err != nil {
			return err
		}
		if tries++; tries == 1 {
			return errors.New("not now")
		}
		fmt.Fprintln(out, key, "has", *d.Spec.Replicas, "replicas")
		return nil
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitFor(ctx, "", deployments.Informer().HasSyncedChecker(), handled.HasSyncedChecker()) {
		return nil
	}
	var workers sync.WaitGroup
	workers.Go(func() { // for each worker
		for {
			key, ended := queue.Get()
			if ended {
				return
			}
			if err := reconcile(key); err != nil {
				fmt.Fprintln(out, key, "failed:", err)
				queue.AddRateLimited(key)
			} else {
				queue.Forget(key)
			}
			queue.Done(key)
		}
	})
	<-ctx.Done()
	queue.ShutDown()
	workers.Wait()
	return nil
	//guide:end
}
