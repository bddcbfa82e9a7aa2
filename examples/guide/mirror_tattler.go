package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

//guide:begin mirror-type-tattler

// replica is an informer.Replica.
type replica struct{ out io.Writer }

func (r replica) Reset(context.Context) error {
	fmt.Fprintln(r.out, "empty the table")
	return nil
}

func (r replica) Put(_ context.Context, key informer.Key, d *appsv1.Deployment) error {
	fmt.Fprintln(r.out, "put", key.Name, *d.Spec.Replicas)
	return nil
}

func (r replica) Delete(_ context.Context, key informer.Key) error {
	fmt.Fprintln(r.out, "delete", key.Name)
	return nil
}

func (r replica) Version(context.Context, informer.Stream, string) error {
	return nil // the moment to commit: the table equals the server's state at this version
}

//guide:end

func mirrorTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, deployments, err := newCluster(cfg)
	if err != nil {
		return err
	}
	//guide:begin mirror-tattler
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		return deployments.Mirror(ctx, "table", replica{out})
	})
	//guide:end
}
