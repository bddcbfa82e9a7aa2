package operator

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// decoded is fed by client-go's Reflector.
func decoded(_ *rest.Config, o *cache.Options) error {
	e, err := clientgo.New(nil, clientgo.Options{})
	if err != nil {
		return err
	}
	o.NewInformer = e.NewInformer
	return nil
}

// raw is fed by the engine's own requests.
func raw(cfg *rest.Config, o *cache.Options) error {
	e, err := clientgo.New(cfg, clientgo.Options{})
	if err != nil {
		return err
	}
	o.HTTPClient, o.NewInformer = e.HTTPClient(), e.NewCacheInformer
	return nil
}
