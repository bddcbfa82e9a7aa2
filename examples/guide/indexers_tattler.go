package guide

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func indexersTattler(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	//guide:begin indexers-tattler
	pods, err := informer.For[*corev1.Pod](cluster, informer.InNamespaces("shop"))
	if err != nil {
		return err
	}
	byApp := informer.AddIndex(pods, "app", func(p *corev1.Pod) []string { return []string{p.Labels["app"]} })
	byNode := informer.AddIndex(pods, "node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	byConfigMap := informer.AddIndex(pods, "configMap", func(p *corev1.Pod) []informer.Key { // several keys
		var keys []informer.Key
		for _, v := range p.Spec.Volumes {
			if v.ConfigMap != nil {
				keys = append(keys, informer.Key{Namespace: p.Namespace, Name: v.ConfigMap.Name})
			}
		}
		return keys
	})
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil {
			return err
		}
		web, err := informer.Collect(byApp.Get("web"))
		if err != nil {
			return err
		}
		there, err := informer.Collect(byNode.Get("node-1"))
		if err != nil {
			return err
		}
		tls := informer.Key{Namespace: "shop", Name: "tls"}
		mounts, err := informer.Collect(byConfigMap.Get(tls))
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "app web", podNames(web))
		fmt.Fprintln(out, "node node-1", podNames(there))
		fmt.Fprintln(out, "configMap", tls, podNames(mounts))
		return nil
	})
	//guide:end
}
