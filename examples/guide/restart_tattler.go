package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

// directory is where the sample keeps its state.
var directory string

func restartTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	//guide:begin restart-tattler
	cluster, err := informer.NewCluster(cfg, informer.Options{Checkpoint: directory})
	if err != nil {
		return err
	}
	deployments, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	changes, err := deployments.Subscribe("printer", informer.SubscribeOptions{FromCheckpoint: true, Mode: informer.Every})
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		for change, err := range changes.All(ctx) {
			if err != nil {
				break
			}
			fmt.Fprintln(out, change.Op, change.Key.Name)
		}
		for _, status := range deployments.Source().Status() {
			fmt.Fprintln(out, "stopped, after", status.Lists, "lists")
		}
		return nil
	})
	//guide:end
}
