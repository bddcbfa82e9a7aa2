// Package guide has the code of docs/guide.md: the topics of tutorials on Kubernetes informers, with client-go and with
// Tattler.
//
// Each sample is a function. It works in the namespace shop, prints, and runs until it is done or its context ends. The
// code between guide:begin and guide:end is a block of the page, and so is a sample's output on a real API server. The
// test compares the page with both; with -update it writes them.
package guide

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

// newFactory is the beginning of the client-go samples.
func newFactory(cfg *rest.Config) (informers.SharedInformerFactory, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("shop")), nil
}

// newCluster is the beginning of the Tattler samples.
func newCluster(cfg *rest.Config) (*informer.Cluster, *informer.Informer[*appsv1.Deployment], error) {
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return nil, nil, err
	}
	deployments, err := informer.For[*appsv1.Deployment](cluster, informer.InNamespaces("shop"))
	return cluster, deployments, err
}

// synced runs a function in a cluster that is synced.
func synced(ctx context.Context, cluster *informer.Cluster, do func(context.Context) error) error {
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil {
			return err
		}
		return do(ctx)
	})
}
