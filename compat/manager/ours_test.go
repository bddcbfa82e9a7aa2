package manager

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// TestManager: the engine sends the requests and decodes an object only when it is read.
func TestManager(t *testing.T) {
	compare(t, func(t *testing.T, cfg *rest.Config, o *cache.Options) {
		e, err := clientgo.New(cfg, clientgo.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.HTTPClient, o.NewInformer = e.HTTPClient(), e.NewCacheInformer
	}, here.writes)
}

// TestManagerDecoded: client-go's Reflector lists and watches, and feeds the engine.
func TestManagerDecoded(t *testing.T) {
	compare(t, func(_ *testing.T, _ *rest.Config, o *cache.Options) {
		o.NewInformer = clientgo.NewSharedIndexInformer
	}, here.writes/2)
}
