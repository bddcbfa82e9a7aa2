// Package dropin compiles what docs/drop-in.md has for controller-runtime; a test of informer/clientgo holds the
// page against it.
package dropin

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

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

// The environment says which informers the program has.
func Example_goBack() { //nolint:testableexamples // it needs a cluster
	_ = func(engine *clientgo.Engine) (ctrl.Manager, error) {
		var options ctrl.Options
		if os.Getenv("INFORMERS") != "client-go" {
			options.Cache = cache.Options{HTTPClient: engine.HTTPClient(), NewInformer: engine.NewCacheInformer}
		}
		return ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	}
}
