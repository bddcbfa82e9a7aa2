package guide

import (
	"context"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func watchClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	//guide:begin watch-clientgo
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	watch, err := client.AppsV1().Deployments("shop").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if d, ok := event.Object.(*appsv1.Deployment); ok {
			fmt.Fprintln(out, event.Type, d.Name)
		}
	}
	fmt.Fprintln(out, "the watch has ended")
	return nil
	//guide:end
}
