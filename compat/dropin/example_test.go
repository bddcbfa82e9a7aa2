// Package dropin contains the controller-runtime code of docs/drop-in.md, so that it compiles. A test of
// informer/clientgo compares the page with it.
package dropin

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// The whole of it.
func Example() { //nolint:testableexamples // it needs a cluster
	_ = func() error {
		config := ctrl.GetConfigOrDie()
		engine, err := clientgo.New(config, clientgo.Options{})
		if err != nil {
			return err
		}
		mgr, err := ctrl.NewManager(config, ctrl.Options{
			Cache: cache.Options{HTTPClient: engine.HTTPClient(), NewInformer: engine.NewCacheInformer},
		})
		if err != nil {
			return err
		}
		return mgr.Start(ctrl.SetupSignalHandler())
	}
}

// A manager with other cache options.
func Example_options() { //nolint:testableexamples // it needs a cluster
	_ = func(engine *clientgo.Engine) (ctrl.Manager, error) {
		options := ctrl.Options{Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: {Label: labels.SelectorFromSet(labels.Set{"app": "web"})},
			},
		}}
		options.Cache.HTTPClient, options.Cache.NewInformer = engine.HTTPClient(), engine.NewCacheInformer
		return ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	}
}

// The environment selects the program's informers.
func Example_goBack() { //nolint:testableexamples // it needs a cluster
	_ = func(engine *clientgo.Engine) (ctrl.Manager, error) {
		var options ctrl.Options
		if os.Getenv("INFORMERS") != "client-go" {
			options.Cache = cache.Options{HTTPClient: engine.HTTPClient(), NewInformer: engine.NewCacheInformer}
		}
		return ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	}
}
