// Command change-bus publishes the changes of some kinds to a stream of NATS JetStream.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/kinds"
)

func main() {
	var o options
	flag.StringVar(&o.kinds, "kinds", "", "kinds to publish, such as `pods,deployments.apps`; * is all that are served at the start but Secrets, which must be named")
	flag.StringVar(&o.nats, "nats", nats.DefaultURL, "`address` of NATS")
	flag.StringVar(&o.stream, "stream", "CHANGES", "`name` of the stream, which is made if there is none, with the subjects changes.>")
	flag.StringVar(&o.checkpoint, "checkpoint", "", "`folder` that remembers what was seen, so that what changes while nobody runs is published, too")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, o) })
}

type options struct{ kinds, nats, stream, checkpoint string }

func run(ctx context.Context, cfg *rest.Config, o options) error {
	if o.kinds == "" {
		return program.Usage("give the kinds to publish, such as --kinds pods,deployments.apps")
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{Checkpoint: o.checkpoint, Hooks: informer.LogTo(nil)})
	if err != nil {
		return err
	}
	chosen, err := choose(ctx, cluster, strings.Split(o.kinds, ","))
	if err != nil {
		return err
	}
	for k := range chosen {
		i, err := informer.Unstructured(cluster, k.Resource, func(o *informer.ViewOptions) { o.DropManagedFields = true })
		if err != nil {
			return err
		}
		// What is there at the first start is no change, nor is what the checkpoint has: all that differs from it is one.
		chosen[k], err = i.Subscribe("bus", informer.SubscribeOptions{Mode: informer.Every, SkipInitial: true, FromCheckpoint: true})
		if err != nil {
			return err
		}
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.WaitForSync(ctx); err != nil {
			return err
		}
		b, err := connect(ctx, o.nats, o.stream)
		if err != nil {
			return err
		}
		defer b.nc.Close()
		slog.Info("publishing", "kinds", len(chosen), "nats", b.nc.ConnectedUrlRedacted())
		var loops sync.WaitGroup
		for k, changes := range chosen {
			loops.Go(func() { publishAll(ctx, b, k.String(), changes) })
		}
		loops.Wait()
		return ctx.Err()
	})
}

// choose finds kinds by the names of their resources, with or without the group.
func choose(ctx context.Context, cluster *informer.Cluster, names []string) (map[kinds.Kind]*informer.Subscription[*unstructured.Unstructured], error) {
	served, err := kinds.List(ctx, cluster)
	switch {
	case served == nil:
		return nil, err
	case err != nil:
		slog.Warn("some kinds are not known", "err", err)
	}
	chosen := map[kinds.Kind]*informer.Subscription[*unstructured.Unstructured]{}
	for _, name := range names {
		found := false
		for _, k := range served {
			if name == "*" && k.String() != "secrets" || !found && (name == k.String() || name == k.Resource.Resource) {
				chosen[k], found = nil, true
			}
		}
		if !found {
			return nil, program.Usage("--kinds: the API server has no kind %q; kubectl api-resources lists what it has", name)
		}
	}
	return chosen, nil
}

// publishAll publishes one change after the other, each until it is stored, so that they stay in order.
func publishAll(ctx context.Context, b *bus, kind string, changes *informer.Subscription[*unstructured.Unstructured]) {
	for change, err := range changes.All(ctx) {
		if err != nil { // the context has ended
			return
		}
		if change.Op == informer.Gapped {
			slog.Warn("versions were missed", "kind", kind, "reason", change.Gap.Reason, "since", change.Gap.Since)
			continue
		}
		m := message{Op: change.Op.String(), Kind: kind, Key: change.Key.String(), ResourceVersion: change.ResourceVersion()}
		if m.Old, err = change.Old(); err == nil {
			m.New, err = change.New()
		}
		if err != nil {
			slog.Error("an object cannot be read; it is published without", "kind", kind, "key", m.Key, "err", err)
		}
		id := fmt.Sprintf("%s.%s", change.UID, m.ResourceVersion)
		if change.Op == informer.Deleted {
			id = fmt.Sprintf("%s.deleted", change.UID) // it has no version of its own
		}
		b.publish(ctx, subject(change.Stream.Resource.Resource, change.Key.Namespace), id, m)
	}
}
