package informertest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// A reconciler runs against the server as against a cluster: it subscribes to deployments, creates their pods
// with client-go's typed clients, sees them in its cache, and reports them in the status. Within
// testing/synctest, sleeps and timeouts of such a test take no time.
func Example_reconciler() {
	server := informertest.NewServer()
	server.Serve(deployments, "Deployment")
	server.Serve(pods, "Pod")
	fmt.Println(reconciled(server.Config()))
	for name := range server.Objects(pods) {
		fmt.Println(name)
	}
	// Output:
	// 1 of 1 replicas exist <nil>
	// shop/web-0
}

// reconciled starts the reconciler, creates a deployment, and waits until its status is reported.
func reconciled(cfg *rest.Config) (string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := newReconciler(cfg)
	done := make(chan error)
	go func() { done <- r.run(ctx) }()
	defer func() { cancel(); <-done }()

	one := int32(1)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &one}}
	if _, err := r.apps.Deployments("shop").Create(ctx, web, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	seen, err := r.deployments.Subscribe("example", informer.SubscribeOptions{})
	if err != nil {
		return "", err
	}
	for {
		change, err := seen.Next(ctx)
		if err != nil {
			return "", err
		}
		if d, err := change.New(); err != nil || d.Status.Replicas == *d.Spec.Replicas {
			return fmt.Sprintf("%d of %d replicas exist", d.Status.Replicas, *d.Spec.Replicas), err
		}
	}
}

// reconciler creates one pod for each deployment, and counts it in the deployment's status.
type reconciler struct {
	cluster     *informer.Cluster
	deployments *informer.Informer[*appsv1.Deployment]
	pods        *informer.Informer[*corev1.Pod]
	core        *coreclient.CoreV1Client
	apps        *appsclient.AppsV1Client
}

func newReconciler(cfg *rest.Config) *reconciler {
	cluster := check1(informer.NewCluster(cfg, informer.Options{}))
	return &reconciler{cluster, check1(informer.For[*appsv1.Deployment](cluster)), check1(informer.For[*corev1.Pod](cluster)),
		check1(coreclient.NewForConfig(cfg)), check1(appsclient.NewForConfig(cfg))}
}

// run reconciles until ctx ends.
func (r *reconciler) run(ctx context.Context) error {
	wanted := check1(r.deployments.Subscribe("deployments", informer.SubscribeOptions{}))
	there := check1(r.pods.Subscribe("pods", informer.SubscribeOptions{}))
	go each(ctx, wanted, func(d *appsv1.Deployment) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-0", Labels: map[string]string{"deployment": d.Name}}}
		_, err := r.core.Pods(d.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	go each(ctx, there, func(p *corev1.Pod) error {
		d, err := r.apps.Deployments(p.Namespace).Get(ctx, p.Labels["deployment"], metav1.GetOptions{})
		if err == nil {
			d.Status.Replicas = 1
			_, err = r.apps.Deployments(p.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		}
		return err
	})
	return r.cluster.Run(ctx)
}

// each reconciles every existing or changed object until the subscription ends.
func each[T informer.Object](ctx context.Context, changes *informer.Subscription[T], reconcile func(T) error) {
	for {
		change, err := changes.Next(ctx)
		if err != nil {
			return
		}
		if change.Op == informer.Deleted {
			continue
		}
		obj, err := change.New()
		if err == nil {
			err = reconcile(obj)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			fmt.Println("reconcile", change.Key, err)
		}
	}
}

// check1 returns v; its error is impossible here.
func check1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestReconciler runs the example in a bubble, where the delays after failed lists take no time.
func TestReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(deployments, "Deployment")
		server.Serve(pods, "Pod")
		server.Misbehave(fault{On: informertest.Lists | informertest.StreamingLists, Code: 503, Times: 6})
		got, err := reconciled(server.Config())
		if want := "1 of 1 replicas exist"; got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	})
}
