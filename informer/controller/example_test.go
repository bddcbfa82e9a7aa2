package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// labelNamespaces labels each namespace that has no owner yet.
func labelNamespaces(namespaces *informer.Informer[*corev1.Namespace], client kubernetes.Interface) *controller.Controller {
	return controller.New("namespaces", func(ctx context.Context, key controller.Key) (controller.Result, error) {
		ns, err := namespaces.Get("", key.Name)
		if err != nil || ns.Labels["owner"] != "" {
			return controller.Result{}, controller.IgnoreGone(err)
		}
		ns.Labels = map[string]string{"owner": "nobody"}
		_, err = client.CoreV1().Namespaces().Update(ctx, ns, metav1.UpdateOptions{})
		return controller.Result{}, err // after a conflict, it is called again
	}, controller.Options{}, controller.For(namespaces, controller.LabelsChanged[*corev1.Namespace]))
}

// TestLabelNamespaces tests a controller end to end, without a cluster and without waiting.
func TestLabelNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resource := corev1.SchemeGroupVersion.WithResource("namespaces")
		server := informertest.NewServer()
		server.Serve(resource, "Namespace")
		server.PutObject(resource, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		cluster, err := informer.NewCluster(server.Config(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		namespaces, err := informer.For[*corev1.Namespace](cluster)
		if err != nil {
			t.Fatal(err)
		}
		labels := labelNamespaces(namespaces, kubernetes.NewForConfigOrDie(server.Config()))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- controller.Run(ctx, cluster, labels) }()
		synctest.Wait()
		if ns, err := namespaces.Get("", "shop"); err != nil || ns.Labels["owner"] != "nobody" {
			t.Errorf("it has the labels %v, %v", ns.Labels, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
