// Command operator creates a Deployment and a Service for each Site. It is an ordinary program on controller-runtime that
// uses this library as its cache: the lines that do so are marked.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer/clientgo" // ours
)

func main() {
	namespace := flag.String("namespace", "", "only Sites in this `namespace`")
	directory := flag.String("directory", "operator/directory", "ConfigMap that lists the addresses of all Sites, as `namespace/name`")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, *namespace, *directory) })
}

func run(ctx context.Context, cfg *rest.Config, namespace, directory string) error {
	at, name, ok := strings.Cut(directory, "/")
	if !ok || at == "" || name == "" {
		return program.Usage("--directory %q: write it as namespace/name", directory)
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	denied := make(chan error, 1)
	options := ctrl.Options{
		Scheme:  runtime.NewScheme(),
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			// Without this, a right that is missing is a line in the log now and then.
			DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
				if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
					select {
					case denied <- err:
					default:
					}
					return
				}
				toolscache.DefaultWatchErrorHandler(ctx, r, err)
			},
		},
	}
	if namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	if err := clientscheme.AddToScheme(options.Scheme); err != nil {
		return err
	}
	addToScheme(options.Scheme)
	say := func() { slog.Info("the cache is controller-runtime's") }
	if os.Getenv("CACHE") != "controller-runtime" {
		engine, err := clientgo.New(cfg, clientgo.Options{}) // ours
		if err != nil {
			return err
		}
		options.Cache.HTTPClient, options.Cache.NewInformer = engine.HTTPClient(), engine.NewCacheInformer // ours
		say = func() {
			for _, i := range engine.Stats().Informers {
				slog.Info("kept by our cache", "informer", i.Name, "objects", i.Objects, "bytes", i.Bytes)
			}
		}
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return err
	}
	// A kind whose informer exists before Start is synced by Start, before the functions added here run.
	for _, kind := range []client.Object{&Site{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil && !meta.IsNoMatchError(err) {
			return err
		}
	}
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { say(); return nil })); err != nil {
		return err
	}
	s := &sites{client: mgr.GetClient(), direct: mgr.GetAPIReader(), scheme: options.Scheme, directory: client.ObjectKey{Namespace: at, Name: name}}
	if err := s.setUp(ctx, mgr); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case err := <-denied: // a Start that waits for its caches ignores its context: it is left behind
		return err
	}
}

// byConfig is the field that Sites are indexed by.
const byConfig = "spec.config"

// setUp says when a Site is reconciled: when it changes, or an object that it owns, or its ConfigMap.
func (s *sites) setUp(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &Site{}, byConfig, func(obj client.Object) []string {
		if name := obj.(*Site).Spec.Config; name != "" {
			return []string{name}
		}
		return nil
	})
	if meta.IsNoMatchError(err) {
		return errors.New("the cluster has no kind Site: kubectl apply -f operator/manifest.yaml")
	} else if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&Site{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(s.using)).Complete(s)
}

// using returns the Sites that use a ConfigMap.
func (s *sites) using(ctx context.Context, config client.Object) []ctrl.Request {
	var list SiteList
	err := s.client.List(ctx, &list, client.InNamespace(config.GetNamespace()), client.MatchingFields{byConfig: config.GetName()})
	if err != nil {
		slog.Error("list Sites", "error", err)
	}
	var requests []ctrl.Request
	for _, site := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&site)})
	}
	return requests
}
