package guide

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func factoryTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cfg, watches := countWatches(cfg)
	//guide:begin factory-tattler
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	one, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	two, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	three, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"), informer.WithLabels("tier=front"))
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil {
			return err
		}
		for _, view := range []*informer.Informer[*appsv1.Deployment]{one, two, three} {
			fmt.Fprintln(out, view.Len(), "deployments")
		}
		fmt.Fprintln(out, watches.Load(), "watches")
		return nil
	})
	//guide:end
}

// countWatches returns a copy of cfg, and how many watches were begun with it.
func countWatches(cfg *rest.Config) (*rest.Config, *atomic.Int64) {
	n := &atomic.Int64{}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, n} })
	return cfg, n
}

type counter struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") {
		c.n.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}
