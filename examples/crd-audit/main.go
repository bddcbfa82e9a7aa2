// Command crd-audit checks every change of every kind against policies in Rego and CEL, including custom resources that
// are defined while it runs.
package main

import (
	"context"
	"flag"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/kinds"
)

func main() {
	var o options
	flag.StringVar(&o.policies, "policies", "", "`folder` with policies: files that end with .rego or .cel")
	flag.StringVar(&o.skip, "skip", "events,leases.coordination.k8s.io,secrets", "`kinds` not to audit, as kubectl api-resources -o name names them")
	flag.StringVar(&o.checkpoint, "checkpoint", "", "`folder` to keep the last seen state in, so that changes made while the program is down are checked as changes too")
	flag.BoolVar(&o.report, "report", false, "write a PolicyReport for each object that violates a policy")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, o) })
}

type options struct {
	policies, skip, checkpoint string
	report                     bool
}

func run(ctx context.Context, cfg *rest.Config, o options) error {
	policies, err := load(o.policies)
	if err != nil {
		return err
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{Checkpoint: o.checkpoint})
	if err != nil {
		return err
	}
	a := &audit{policies: policies, cluster: cluster, skip: strings.Split(o.skip, ",")}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		defer a.running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if o.report {
			if a.reports, err = newReports(ctx, cfg); err != nil {
				return err
			}
			a.running.Go(func() { a.reports.run(ctx) })
		}
		return a.all(ctx)
	})
}

// audit checks the objects of all kinds.
type audit struct {
	policies []policy
	cluster  *informer.Cluster
	skip     []string
	reports  *reports // nil: none are written
	running  sync.WaitGroup

	unsynced, readable atomic.Int64 // kinds: those not yet listed, and those that could be
}

// all follows the kinds, and the objects of each.
func (a *audit) all(ctx context.Context) error {
	open := map[kinds.Kind]*informer.Subscription[*unstructured.Unstructured]{}
	for change, err := range kinds.Changes(ctx, a.cluster, kinds.Options{}) {
		if err != nil {
			return err
		}
		k := change.Kind
		switch {
		case slices.Contains(a.skip, k.String()) || k.Resource.Group == reportGroup:
		case change.Gone:
			slog.Info("no longer served", "kind", k)
			open[k].Drain() // the deletions of its objects are still to come
			delete(open, k)
		default:
			var view *informer.Informer[*unstructured.Unstructured]
			if err := a.cluster.Hold(func() (err error) { // the checkpoint must not be replaced before we subscribe
				if view, err = informer.Unstructured(a.cluster, k.Resource, func(o *informer.ViewOptions) { o.DropManagedFields = true }); err != nil {
					return err
				}
				// Every version counts: even a short-lived one is a transition.
				open[k], err = view.Subscribe("audit", informer.SubscribeOptions{Mode: informer.Every, FromCheckpoint: true})
				return err
			}); err != nil {
				return err
			}
			if change.Initial {
				a.unsynced.Add(1)
				a.running.Go(func() { a.synced(ctx, view) })
			} else {
				slog.Info("served", "kind", k)
			}
			objects := open[k]
			a.running.Go(func() {
				defer view.Close()
				a.kind(ctx, k, objects)
			})
		}
	}
	return nil
}
