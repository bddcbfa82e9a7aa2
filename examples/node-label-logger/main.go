// Command node-label-logger logs each node that joins the cluster with a given label.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
)

func main() {
	label := flag.String("label", "", "`selector` of the nodes to log, such as pool or pool=gpu")
	initial := flag.Bool("initial", false, "also log the nodes that exist at the start")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, *label, *initial) })
}

func run(ctx context.Context, cfg *rest.Config, label string, initial bool) error {
	if _, err := labels.Parse(label); err != nil || label == "" {
		return program.Usage("--label %q: give the label that nodes must have, such as --label pool=gpu", label)
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	nodes, err := informer.For[*corev1.Node](cluster, informer.WithLabels(label))
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := nodes.Wait(ctx); err != nil {
			return err
		}
		slog.Info("synced", "label", label, "nodes", nodes.Len())
		if nodes.Len() == 0 {
			slog.Warn("no node has the label yet; kubectl get nodes --show-labels lists what they have", "label", label)
		}
		return logNodes(ctx, nodes, initial)
	})
}

// logNodes logs the nodes that join. To an informer with a selector, a node that gets the label later is added as well:
// it was not selected before.
func logNodes(ctx context.Context, nodes *informer.Informer[*corev1.Node], initial bool) error {
	added, err := nodes.Subscribe("log", informer.SubscribeOptions{SkipInitial: !initial})
	if err != nil {
		return err
	}
	defer added.Stop()
	for change, err := range added.All(ctx) {
		if err != nil {
			return fmt.Errorf("read changes: %w", err)
		}
		if change.Op != informer.Added {
			continue
		}
		node, err := change.New()
		if err != nil {
			slog.Error("a node cannot be read", "node", change.Key.Name, "error", err)
			continue
		}
		slog.Info("node joined", "node", node.Name, "created", node.CreationTimestamp.UTC(), "was there", change.Initial, "labels", node.Labels)
	}
	return nil
}
