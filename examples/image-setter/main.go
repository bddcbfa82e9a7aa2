// Command image-setter keeps the image of Deployments that carry a label at a value from outside: a flag, a ConfigMap or
// an HTTP server.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/tattler-dev/tattler/examples/internal/images"
	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

func main() {
	rule := images.NewFlags()
	every := flag.Duration("every", time.Minute, "how often an HTTP source is asked again")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, rule, *every) })
}

func run(ctx context.Context, cfg *rest.Config, flags *images.Flags, every time.Duration) error {
	if every <= 0 {
		return program.Usage("--every %v: give a positive time, such as --every 1m", every)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	rule, err := flags.Rule(cluster)
	if err != nil {
		return err
	}
	deployments, err := informer.For[*appsv1.Deployment](cluster, informer.WithLabels(rule.Label))
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	s := &setter{rule, every, deployments, client, broadcaster.NewRecorder(scheme.Scheme, "image-setter")}

	// Its own write changes the generation once and then nothing, so it does not loop.
	changed := controller.Any(controller.GenerationChanged[*appsv1.Deployment], controller.LabelsChanged)
	sources := []controller.Source{controller.For(deployments, changed)}
	if rule.ConfigMap != nil {
		sources = append(sources, controller.Each(rule.ConfigMap, deployments))
	}
	hooks := controller.Hooks{Synced: func() { slog.Info("synced", "label", rule.Label, "deployments", deployments.Len()) }}
	o := controller.Options{MinBackoff: min(every, time.Second), MaxBackoff: every, Hooks: hooks}
	return controller.Run(ctx, cluster, controller.New("image-setter", s.reconcile, o, sources...))
}

type setter struct {
	rule        *images.Rule
	every       time.Duration
	deployments *informer.Informer[*appsv1.Deployment]
	client      kubernetes.Interface
	events      events.EventRecorder
}

func (s *setter) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	d, err := s.deployments.Get(key.Namespace, key.Name)
	if err != nil {
		return controller.Result{}, controller.IgnoreGone(err)
	}
	next := controller.Result{RequeueAfter: s.every} // for a source that does not say when it changes
	image, err := s.rule.Image(ctx, d)
	switch {
	case errors.As(err, new(*images.Missing)):
		return next, s.note(ctx, d, "NoImage", err.Error())
	case err != nil:
		return next, errors.Join(err, s.note(ctx, d, "SourceUnavailable", "the source of images does not answer"))
	case s.rule.Has(d, image) && d.Annotations[problem] == "":
		return next, nil
	}
	return next, s.set(ctx, d, image)
}

// problem is the annotation that says why the image of a Deployment is not kept.
const problem = "image-setter/problem"

// set writes the image. It judges the API server's current object, not the cached one.
func (s *setter) set(ctx context.Context, d *appsv1.Deployment, image string) error {
	var container, was string
	wrote, err := s.update(ctx, d, func(now *appsv1.Deployment) error {
		i, err := s.rule.Container(now)
		if err != nil {
			return err
		}
		c := &now.Spec.Template.Spec.Containers[i]
		container, was, c.Image = c.Name, c.Image, image
		delete(now.Annotations, problem)
		return nil
	})
	if wrote {
		slog.Info("set image", "image", image, "deployment", d.Namespace+"/"+d.Name, "container", container, "was", was)
	}
	return err
}

// note says in an annotation and in an event why the image is left as it is.
func (s *setter) note(ctx context.Context, d *appsv1.Deployment, reason, why string) error {
	if d.Annotations[problem] == why {
		return nil
	}
	slog.Warn("left as it is", "deployment", d.Namespace+"/"+d.Name, "why", why)
	s.events.Eventf(d, nil, corev1.EventTypeWarning, reason, "SetImage", "%s", why)
	_, err := s.update(ctx, d, func(now *appsv1.Deployment) error {
		metav1.SetMetaDataAnnotation(&now.ObjectMeta, problem, why)
		return nil
	})
	return err
}

// update writes a Deployment, again after a conflict, if it is still the one that was judged, and waits for the cache.
func (s *setter) update(ctx context.Context, d *appsv1.Deployment, change func(*appsv1.Deployment) error) (wrote bool, err error) {
	api := s.client.AppsV1().Deployments(d.Namespace)
	written, err := controller.Update(ctx, func(ctx context.Context) (*appsv1.Deployment, error) {
		return api.Get(ctx, d.Name, metav1.GetOptions{})
	}, func(now *appsv1.Deployment) (bool, error) {
		if wrote = now.UID == d.UID && now.Labels[s.rule.Label] == d.Labels[s.rule.Label]; !wrote {
			return false, nil // that change brings it here again
		}
		return true, change(now)
	}, func(ctx context.Context, now *appsv1.Deployment) (*appsv1.Deployment, error) {
		return api.Update(ctx, now, metav1.UpdateOptions{FieldManager: "image-setter"})
	})
	if err != nil {
		return false, controller.IgnoreGone(err)
	}
	return wrote, s.deployments.Await(ctx, written)
}
