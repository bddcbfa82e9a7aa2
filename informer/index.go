package informer

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// ErrIndexBuilding is what Index.Err returns until an index that was added to objects that were
// there already knows all of them.
var ErrIndexBuilding = errors.New("informer: index is being built")

// Index finds objects by values that a function computes of them. It is safe for concurrent use.
type Index[T Object, K comparable] struct {
	informer *Informer[T]
	name     string
	values   func(T) []K
	shards   []*shard[K] // by stream
	slot     int
	fails    atomic.Uint64
	pending  atomic.Int64 // shards that do not know all of their objects
	closed   atomic.Bool
}

// AddIndex adds an index to the view's source; values is called once for each version of an object,
// by the goroutines that read the server's answers, and must not keep or change the object. If it
// panics the object is left out of the index, counted (Index.Failed) and told (Hooks.IndexError).
// The name only shows up in what is told.
//
// An index may be added at any time. Objects that are there already are indexed in the background.
func AddIndex[T Object, K comparable](i *Informer[T], name string, values func(T) []K) *Index[T, K] {
	ix := &Index[T, K]{informer: i, name: name, values: values}
	user := &indexer{
		codec:   i.codec,
		compute: ix.compute,
		shard:   func(stream int) indexShard { return ix.shards[stream] },
		status:  ix.status,
	}
	for _, st := range i.source.streams {
		sh := newShard[K](&ix.pending, &ix.closed)
		sh.work = func() { go i.source.cluster.spawn(func() { st.build(user, sh) }) }
		ix.shards = append(ix.shards, sh)
	}
	i.source.addIndexer(user)
	ix.slot = user.slot
	return ix
}

// Get returns the objects with a value, in no order. While the index is being built, and behind
// Close, it asks every object, which is slow but right.
func (ix *Index[T, K]) Get(value K) iter.Seq[T] {
	return func(yield func(T) bool) {
		for n, st := range ix.informer.source.streams {
			found, ready := ix.shards[n].find(st.store, value)
			if !ready && !ix.scan(st, value, yield) {
				return
			}
			for _, item := range found {
				if obj, err := decode(ix.informer, st, item, private); err == nil && !yield(obj) {
					return
				}
			}
		}
	}
}

// Keys returns the keys of the objects with a value, in no order, or the error of Err.
func (ix *Index[T, K]) Keys(value K) ([]Key, error) {
	if err := ix.Err(); err != nil {
		return nil, err
	}
	var keys []Key
	for n, st := range ix.informer.source.streams {
		found, ready := ix.shards[n].find(st.store, value)
		if !ready {
			return nil, cmp.Or(ix.Err(), ErrIndexBuilding)
		}
		for _, item := range found {
			keys = append(keys, Key(item.Key))
		}
	}
	return keys, nil
}

// Values returns every value that some object has, in no order, or the error of Err.
func (ix *Index[T, K]) Values() ([]K, error) {
	if err := ix.Err(); err != nil {
		return nil, err
	}
	seen := map[K]struct{}{}
	for n, st := range ix.informer.source.streams {
		ready := false
		st.store.View(func(func(store.Key) *compact.Version) {
			ready = ix.shards[n].ready()
			for value := range ix.shards[n].keys {
				seen[value] = struct{}{}
			}
		})
		if !ready {
			return nil, cmp.Or(ix.Err(), ErrIndexBuilding)
		}
	}
	all := make([]K, 0, len(seen))
	for value := range seen {
		all = append(all, value)
	}
	return all, nil
}

// Err is ErrIndexBuilding until the index knows every object, and ErrClosed behind Close.
func (ix *Index[T, K]) Err() error {
	switch {
	case ix.closed.Load():
		return ErrClosed
	case ix.pending.Load() > 0:
		return ErrIndexBuilding
	}
	return nil
}

// Failed counts the versions for which the index's function panicked.
func (ix *Index[T, K]) Failed() uint64 { return ix.fails.Load() }

// Close removes the index.
func (ix *Index[T, K]) Close() {
	if !ix.closed.CompareAndSwap(false, true) {
		return
	}
	ix.informer.source.removeIndexer(ix.slot)
}

// scan answers for one stream without the index; it tells whether to go on.
func (ix *Index[T, K]) scan(st *stream, value K, yield func(T) bool) bool {
	whole := ix.informer.source.beginScan(ix.informer.shared)
	for _, item := range st.store.Snapshot("") {
		obj, err := decode(ix.informer, st, item, whole)
		if err != nil {
			continue
		}
		if values, _ := ix.call(obj); slices.Contains(values, value) && !yield(obj) {
			return false
		}
	}
	return true
}

// call is the user's function, tamed.
func (ix *Index[T, K]) call(obj T) (values []K, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("index %s: %w", ix.name, panicked(p))
		}
	}()
	// A value that is not equal to itself could not be found again; one of an interface that cannot
	// be compared panics here, and not in the map.
	return slices.DeleteFunc(slices.Clone(ix.values(obj)), func(v K) bool { return !equal(v, v) }), nil
}

func equal[K comparable](a, b K) bool { return a == b }

// compute returns the values of an object as its shard takes them.
func (ix *Index[T, K]) compute(obj Object) (any, error) {
	var values []K
	o, ok := obj.(T)
	err := error(nil)
	if ok {
		values, err = ix.call(o)
	}
	if err != nil {
		ix.fails.Add(1)
	}
	return computed[K]{&ix.pending, values}, err
}

// computed are an object's values; that there are none is a result, too.
type computed[K comparable] struct {
	of     *atomic.Int64 // names the index: it is its count of pending shards
	values []K
}

func (ix *Index[T, K]) status() IndexStatus {
	return IndexStatus{Name: ix.name, Failed: ix.Failed(), Err: ix.Err()}
}
