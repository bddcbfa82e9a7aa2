package cache_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	kcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// The environment selects whether the informers take the API server's undecoded responses. A spec that sets NewInformer
// keeps its informers.
func init() {
	cache.SubstituteOptions = func(cfg *rest.Config, o cache.Options) (cache.Options, error) {
		if o.NewInformer != nil {
			return o, nil
		}
		engine, err := clientgo.New(cfg, clientgo.Options{})
		if err != nil {
			return o, err
		}
		newInformer := engine.NewInformer
		if os.Getenv("TATTLER_UPSTREAM_PATH") != "decoded" {
			o.HTTPClient, newInformer = engine.HTTPClient(), engine.NewCacheInformer
		}
		o.NewInformer = func(lw kcache.ListerWatcher, example runtime.Object, resync time.Duration, indexers kcache.Indexers) kcache.SharedIndexInformer {
			record()
			informer := newInformer(lw, example, resync, indexers)
			if strings.Contains(CurrentSpecReport().FullText(), "cancelled") {
				return idleInformer{informer}
			}
			if os.Getenv("TATTLER_UPSTREAM_FAULT") == "deaf" {
				return deafInformer{informer}
			}
			return informer
		}
		return o, nil
	}
}

// record appends the name of the running spec to the log.
func record() {
	path := os.Getenv("TATTLER_UPSTREAM_LOG")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, CurrentSpecReport().FullText()); err != nil {
		panic(err)
	}
}

// idleInformer never lists, as if the API server did not answer. Specs that read with a cancelled context expect the error
// of an informer that has not synced, and would fail if it synced before the cache looked.
type idleInformer struct{ kcache.SharedIndexInformer }

func (idleInformer) RunWithContext(ctx context.Context) { <-ctx.Done() }

// deafInformer is broken: it notifies its handlers of deletions only.
type deafInformer struct{ kcache.SharedIndexInformer }

func (i deafInformer) AddEventHandler(h kcache.ResourceEventHandler) (kcache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(deafHandler{h})
}

type deafHandler struct{ kcache.ResourceEventHandler }

func (deafHandler) OnAdd(any, bool)   {}
func (deafHandler) OnUpdate(_, _ any) {}
