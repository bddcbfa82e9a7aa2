// Command pod-restarter evicts pods that are stuck: a container waits for a given reason, or an event with a given reason
// is about the pod, for longer than --after. Evictions obey PodDisruptionBudgets. Without --evict, it only logs what it
// would do.
package main

import (
	"context"
	"flag"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

type options struct {
	reasons, events []string
	namespace       string
	after, retry    time.Duration
	perMinute       float64
	bare, evict     bool
}

func main() {
	var o options
	list := func(to *[]string) func(string) error {
		return func(s string) error { *to = append(*to, s); return nil }
	}
	flag.Func("reason", "a container waits for this `reason`, such as CreateContainerConfigError; repeatable", list(&o.reasons))
	flag.Func("event", "a warning with this `reason` is about the pod, such as FailedMount; repeatable", list(&o.events))
	flag.StringVar(&o.namespace, "namespace", "", "only pods in this `namespace`")
	flag.DurationVar(&o.after, "after", 5*time.Minute, "for how long a pod must be stuck")
	flag.DurationVar(&o.retry, "retry", 30*time.Second, "how long to wait before trying an eviction again that failed, or that a PodDisruptionBudget forbade")
	flag.Float64Var(&o.perMinute, "per-minute", 6, "how many pods to evict per minute, at most")
	flag.BoolVar(&o.bare, "bare", false, "also evict pods without a controller, which nothing replaces")
	flag.BoolVar(&o.evict, "evict", false, "evict the pods; without it, the API server only checks the evictions")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, o) })
}

func run(ctx context.Context, cfg *rest.Config, o options) error {
	if len(o.reasons)+len(o.events) == 0 || o.after < 0 || o.retry <= 0 || !(o.perMinute > 0) {
		return program.Usage("give a --reason or an --event, a positive --per-minute and --retry, and no negative --after")
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	r := &restarter{options: o, client: client, seen: map[controller.Key]record{}}
	if r.pods, err = informer.For[*corev1.Pod](cluster, informer.InNamespaces(o.namespace)); err != nil {
		return err
	}
	sources := []controller.Source{controller.For(r.pods)}
	if len(o.events) > 0 {
		events, err := informer.For[*corev1.Event](cluster, informer.InNamespaces(o.namespace), informer.WithFields("involvedObject.kind=Pod,type=Warning"))
		if err != nil {
			return err
		}
		r.byPod = informer.AddIndex(events, "pod", about)
		sources = append(sources, controller.Map(events, func(e *corev1.Event) []controller.Key {
			return []controller.Key{{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}}
		}))
	}
	if !o.evict {
		slog.Info("dry run: nothing is deleted; --evict evicts")
	}
	hooks := controller.Hooks{Synced: func() { slog.Info("synced", "pods", r.pods.Len()) }}
	return controller.Run(ctx, cluster, controller.New("pod-restarter", r.reconcile, controller.Options{MaxBackoff: o.retry, Hooks: hooks}, sources...))
}

// restarter has one worker, so its state needs no lock.
type restarter struct {
	options
	client kubernetes.Interface
	pods   *informer.Informer[*corev1.Pod]
	byPod  podEvents
	seen   map[controller.Key]record
	next   time.Time // when the next eviction is due, at the earliest
}

func (r *restarter) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	pod, err := r.pods.Get(key.Namespace, key.Name)
	if err != nil {
		delete(r.seen, key)
		return controller.Result{}, controller.IgnoreGone(err)
	}
	stuck, err := r.stuck(pod)
	if err != nil || stuck == nil {
		delete(r.seen, key)
		return controller.Result{}, err
	}
	known := r.remember(key, pod, stuck)
	if wait := time.Until(stuck.since.Add(r.after)); wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case known.done:
		return controller.Result{}, nil
	case owner == nil && !r.bare:
		r.log(key, "left alone: it has no controller, so nothing would replace it (--bare evicts it)", stuck)
		return controller.Result{}, nil
	case owner != nil && owner.Kind == "Node":
		r.log(key, "left alone: the kubelet runs it from a file of its node", stuck)
		return controller.Result{}, nil
	}
	if wait := time.Until(r.next); wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	return r.restart(ctx, key, pod, stuck)
}

// restart evicts a pod, or has the API server check whether it could. The pod must still be as it was judged.
func (r *restarter) restart(ctx context.Context, key controller.Key, pod *corev1.Pod, stuck *stuck) (controller.Result, error) {
	o := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}}
	if !r.evict {
		o.DryRun = []string{metav1.DryRunAll}
	}
	err := r.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}, DeleteOptions: o,
	})
	switch {
	case apierrors.IsTooManyRequests(err):
		slog.Warn("may not be evicted now", "pod", key.String(), "why", cause(err), "again in", r.retry)
		return controller.Result{RequeueAfter: r.retry}, nil
	case apierrors.IsNotFound(err): // it has gone by itself
	case apierrors.IsConflict(err):
		slog.Info("not evicted: it has changed since it was judged, and is judged again", "pod", key.String())
	case err != nil:
		return controller.Result{}, err
	case r.evict:
		r.next = time.Now().Add(time.Duration(float64(time.Minute) / r.perMinute))
		r.log(key, "evicted", stuck)
	default:
		r.log(key, "would evict", stuck)
	}
	return controller.Result{}, nil
}
