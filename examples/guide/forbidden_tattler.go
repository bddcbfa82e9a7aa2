package guide

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

func forbiddenTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, deployments, err := newCluster(cfg)
	if err != nil {
		return err
	}
	//guide:begin forbidden-tattler
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		err := deployments.Wait(ctx)
		fmt.Fprintln(out, "forbidden:", apierrors.IsForbidden(err))
		fmt.Fprintln(out, "wait:", err)
		return nil
	})
	//guide:end
}
