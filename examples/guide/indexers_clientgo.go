package guide

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/rest"
)

func indexersClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	factory, err := newFactory(cfg)
	if err != nil {
		return err
	}
	//guide:begin indexers-clientgo
	pods := factory.Core().V1().Pods().TypedInformer()
	err = pods.AddTypedIndexers(coreinformers.PodIndexers{
		"app":  func(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil },
		"node": func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
		"configMap": func(p *corev1.Pod) ([]string, error) { // several keys
			var keys []string
			for _, v := range p.Spec.Volumes {
				if v.ConfigMap != nil {
					keys = append(keys, p.Namespace+"/"+v.ConfigMap.Name)
				}
			}
			return keys, nil
		},
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	for _, q := range [][2]string{{"app", "web"}, {"node", "node-1"}, {"configMap", "shop/tls"}} {
		found, err := pods.GetTypedIndexer().ByTypedIndex(q[0], q[1])
		if err != nil { // for example, there is no such index
			return err
		}
		fmt.Fprintln(out, q[0], q[1], podNames(found))
	}
	//guide:end
	<-ctx.Done()
	return nil
}

func podNames(pods []*corev1.Pod) []string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}
