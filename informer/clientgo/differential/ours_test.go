package differential

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// TestDifferential compares our informer with client-go's, in every storage form.
func TestDifferential(t *testing.T) {
	t.Run("default", func(t *testing.T) { run(t, 40, clientgo.NewSharedIndexInformer) })
	for _, o := range []clientgo.Options{
		{Storage: clientgo.Compact, Hot: 1}, // each read decodes
		{Storage: clientgo.Live},
		{Storage: clientgo.Auto, Hot: 1, Kept: 8 << 10}, // listed objects are kept decoded, up to the budget
	} {
		t.Run(o.Storage.String()+" alone", func(t *testing.T) {
			run(t, 40, func(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
				engine, err := clientgo.New(nil, o)
				if err != nil {
					t.Fatal(err)
				}
				return engine.NewInformer(lw, example, resync, indexers)
			})
		})
	}
}
