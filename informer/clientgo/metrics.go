package clientgo

import (
	"k8s.io/client-go/tools/cache"
)

// metrics are those that client-go publishes of an informer that has a name. Its own store and queue, which have no
// objects, publish them.
type metrics struct {
	store cache.Store
	queue *cache.RealFIFO
}

// newMetrics returns nil where the options have no name that is in use.
func newMetrics(o cache.SharedIndexInformerOptions) *metrics {
	if !o.Identifier.Reserved() {
		return nil
	}
	return &metrics{
		store: cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(o.Identifier, o.InformerMetricsProvider)),
		queue: cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			KeyFunction:     func(any) (string, error) { return "", nil },
			KnownObjects:    cache.NewStore(cache.MetaNamespaceKeyFunc),
			Identifier:      o.Identifier,
			MetricsProvider: o.InformerMetricsProvider,
		}),
	}
}

// process calls f, which processes what the Reflector has brought.
func (m *metrics) process(f func()) {
	if m == nil {
		f()
		return
	}
	done := false
	err := m.queue.Add(struct{}{})
	if err == nil {
		_, err = m.queue.Pop(func(any, bool) error {
			done = true
			f()
			return nil
		})
	}
	if err != nil && !done {
		f()
	}
}

// version notes the last version that was seen.
func (m *metrics) version(v string) {
	if m != nil {
		m.store.Bookmark(v)
	}
}
