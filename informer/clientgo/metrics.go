package clientgo

import (
	"k8s.io/client-go/tools/cache"
)

// metrics publishes client-go's metrics of an informer that has an identifier. It uses client-go's own store and
// queue, which hold no objects.
type metrics struct {
	store cache.Store
	queue *cache.RealFIFO
}

// newMetrics returns nil unless the options have a reserved identifier.
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

// process calls f, which processes a change from the Reflector, and counts it.
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

// version records the last version seen.
func (m *metrics) version(v string) {
	if m != nil {
		m.store.Bookmark(v)
	}
}
