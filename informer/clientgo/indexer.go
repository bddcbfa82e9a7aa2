package clientgo

import (
	"fmt"
	"slices"

	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
)

// indexer implements client-go's interfaces over a table. Objects that the program writes through it are kept as they
// are, since they belong to the program, and handlers are not notified.
type indexer struct{ *table }

var (
	_ cache.Indexer          = indexer{}
	_ cache.TransactionStore = indexer{}
)

// keyOf returns the key under which an object is stored.
func keyOf(obj any) (string, error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", cache.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// Add implements cache.Store.
func (x indexer) Add(obj any) error { return x.Update(obj) }

// Update implements cache.Store.
func (x indexer) Update(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	x.apply([]change{{key: key, item: held(obj), obj: obj, byHand: true}}, false, seen(obj))
	return nil
}

// Delete implements cache.Store.
func (x indexer) Delete(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	x.apply([]change{{key: key}}, false, seen(obj))
	return nil
}

// seen returns an object's version, or nil if it has none.
func seen(obj any) *string {
	if v, ok := versionOf(obj); ok {
		return &v
	}
	return nil
}

// Replace implements cache.Store.
func (x indexer) Replace(objs []any, version string) error {
	changes := make([]change, len(objs))
	for i, obj := range objs {
		key, err := keyOf(obj)
		if err != nil {
			return err
		}
		changes[i] = change{key: key, item: held(obj), obj: obj, byHand: true}
	}
	x.apply(changes, true, &version)
	return nil
}

// Transaction implements cache.TransactionStore.
func (x indexer) Transaction(txns ...cache.Transaction) *cache.TransactionError {
	var changes []change
	failed := &cache.TransactionError{TotalTransactions: len(txns)}
	for i, t := range txns {
		key, err := keyOf(t.Object)
		if err != nil {
			failed.Errors = append(failed.Errors, err)
			continue
		}
		failed.SuccessfulIndices = append(failed.SuccessfulIndices, i)
		c := change{key: key, byHand: true}
		if t.Type != cache.TransactionTypeDelete {
			c.item, c.obj = held(t.Object), t.Object
		}
		changes = append(changes, c)
	}
	if len(txns) > 0 {
		x.apply(changes, false, seen(txns[len(txns)-1].Object))
	}
	if len(failed.Errors) > 0 {
		return failed
	}
	return nil
}

// Get implements cache.Store.
func (x indexer) Get(obj any) (item any, exists bool, err error) {
	key, err := keyOf(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

// GetByKey implements cache.Store.
func (x indexer) GetByKey(key string) (item any, exists bool, err error) {
	obj, ok := x.get(key)
	if ok {
		x.detector().reads("GetByKey", obj)
	}
	return obj, ok, nil
}

// List implements cache.Store.
func (x indexer) List() []any {
	objs := x.all()
	x.detector().reads("List", objs...)
	return objs
}

// ListKeys implements cache.Store.
func (x indexer) ListKeys() []string { return x.keys() }

// Resync implements cache.Store. It does nothing.
func (x indexer) Resync() error { return nil }

// Bookmark implements cache.Store.
func (x indexer) Bookmark(version string) { x.apply(nil, false, &version) }

// LastStoreSyncResourceVersion implements cache.Store. As in client-go, it is empty if the AtomicFIFO feature is off.
func (x indexer) LastStoreSyncResourceVersion() string {
	if !features.FeatureGates().Enabled(features.AtomicFIFO) {
		return ""
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.version
}

// Index implements cache.Indexer.
func (x indexer) Index(name string, obj any) ([]any, error) {
	x.mu.RLock()
	ix, err := x.index(name)
	x.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	values, err := ix.of(obj)
	if err != nil {
		return nil, err
	}
	return x.found(name, values)
}

// found looks up objects and reports the read to the mutation detector.
func (x indexer) found(name string, values []string) ([]any, error) {
	objs, err := x.lookup(name, values)
	x.detector().reads(fmt.Sprintf("index %q", name), objs...)
	return objs, err
}

// ByIndex implements cache.Indexer.
func (x indexer) ByIndex(name, value string) ([]any, error) { return x.found(name, []string{value}) }

// IndexKeys implements cache.Indexer. The keys are sorted.
func (x indexer) IndexKeys(name, value string) ([]string, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix, err := x.index(name)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	ix.found[value].each(func(e *entry) { keys = append(keys, e.key) })
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues implements cache.Indexer.
func (x indexer) ListIndexFuncValues(name string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix, err := x.index(name)
	if err != nil {
		return []string{}
	}
	values := make([]string, 0, len(ix.found))
	for v := range ix.found {
		values = append(values, v)
	}
	return values
}

// GetIndexers implements cache.Indexer. The map is the caller's.
func (x indexer) GetIndexers() cache.Indexers { return x.indexers() }

// AddIndexers implements cache.Indexer.
func (x indexer) AddIndexers(more cache.Indexers) error { return x.addIndexers(more) }
