// Command change-bus publishes the changes of chosen kinds to a stream of NATS JetStream.
package main

import (
	"context"
	"flag"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
)

func main() {
	names := flag.String("kinds", "", "the kinds to publish, such as `pods,deployments.apps`")
	address := flag.String("nats", nats.DefaultURL, "`address` of NATS")
	checkpoint := flag.String("checkpoint", "", "`folder` to keep the last seen state in, so that changes made while the program is down are published too")
	program.Main(func(ctx context.Context, cfg *rest.Config) error {
		return run(ctx, cfg, strings.Split(*names, ","), *address, *checkpoint)
	})
}

// run is the whole program: an informer and a subscription for each kind, a connection, and a loop that publishes.
func run(ctx context.Context, cfg *rest.Config, names []string, address, checkpoint string) error {
	cluster, err := informer.NewCluster(cfg, informer.Options{Checkpoint: checkpoint})
	if err != nil {
		return err
	}
	chosen, err := find(ctx, cluster, names)
	if err != nil {
		return err
	}
	for kind := range chosen {
		objects, err := informer.Unstructured(cluster, kind.Resource, func(o *informer.ViewOptions) { o.DropManagedFields = true })
		if err != nil {
			return err
		}
		// What exists at the first start is not a change. After that, whatever differs from the checkpoint is one.
		chosen[kind], err = objects.Subscribe("bus", informer.SubscribeOptions{Mode: informer.Every, SkipInitial: true, FromCheckpoint: true})
		if err != nil {
			return err
		}
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil { // because a right is missing, for example
			return err
		}
		bus, err := connect(ctx, address)
		if err != nil {
			return err
		}
		defer bus.Conn().Close()
		slog.Info("publishing", "kinds", len(chosen), "nats", bus.Conn().ConnectedUrlRedacted())
		// After SIGTERM, changes that have been seen are still published, for up to 25 seconds: a pod is killed after 30.
		publishing, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		context.AfterFunc(ctx, func() { time.AfterFunc(25*time.Second, cancel) })
		var loops sync.WaitGroup
		for kind, changes := range chosen {
			context.AfterFunc(ctx, changes.Drain)
			loops.Go(func() { publish(publishing, bus, kind, changes) })
		}
		loops.Wait()
		return nil
	})
}
