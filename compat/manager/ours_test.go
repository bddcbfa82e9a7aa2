package manager

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// TestManager: the engine takes the answers undecoded, and never decodes what nobody reads.
func TestManager(t *testing.T) {
	compare(t, func(t *testing.T, cfg *rest.Config, o *cache.Options) {
		e, err := clientgo.New(cfg, clientgo.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.HTTPClient, o.NewInformer = e.HTTPClient(), e.NewCacheInformer
	}, here.writes)
}

// TestManagerDecoded: the engine has what client-go's Reflector lists and watches.
func TestManagerDecoded(t *testing.T) {
	compare(t, func(_ *testing.T, _ *rest.Config, o *cache.Options) {
		o.NewInformer = clientgo.NewSharedIndexInformer
	}, here.writes/2)
}
