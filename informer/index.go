package informer

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// An index that is added late computes its values for the stored objects in steps, and for arriving objects as they
// arrive. Until it is complete, a lookup asks every object, which is slow and correct.

// Index finds objects by the value of a function or of a field. It is safe for concurrent use.
type Index[T Object, K comparable] struct {
	informer *Informer[T]
	name     string
	values   func(T) []K
	bytes    func(f wire.Format, raw []byte) ([]K, bool) // values without decoding; nil: not possible; false: not for these bytes
	shards   []*shard[K]                                 // by stream
	slot     int
	fails    atomic.Uint64
	pending  atomic.Int64 // incomplete shards
	closed   atomic.Bool
}

// AddIndex adds an index to the view's source. The goroutines that read the server's responses call values once for each
// version of an object (twice for a version that arrives while the index is being added); it must not keep or modify the
// object. If it panics, the object is left out of the index, counted (Index.Failed) and reported (Hooks.IndexError). The
// name is for reports.
//
// An index may be added at any time. Cached objects are indexed in the background.
//
// It decodes each object. If a path can name the value, AddFieldIndex costs less.
func AddIndex[T Object, K comparable](i *Informer[T], name string, values func(T) []K) *Index[T, K] {
	i.source.shares.Store(true)
	return addIndex(i, name, values, nil)
}

func addIndex[T Object, K comparable](i *Informer[T], name string, values func(T) []K, bytes func(wire.Format, []byte) ([]K, bool)) *Index[T, K] {
	ix := &Index[T, K]{informer: i.named(indexReader(name)), name: name, values: values, bytes: bytes}
	user := &indexer{
		codec:   i.codec,
		read:    ix.read,
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

// Informer returns the view that the index was added to.
func (ix *Index[T, K]) Informer() *Informer[T] { return ix.informer }

// Get returns the objects with a value, in no order. In place of each object that cannot be decoded it yields a
// *DecodeError, since the object may have the value. ErrClosed comes last, as in Informer.All. While the index is
// being built, and after Close, it examines every object, which is slow but correct.
func (ix *Index[T, K]) Get(value K) iter.Seq2[T, error] { return ix.In("", value) }

// In is Get within a namespace; empty means all namespaces.
func (ix *Index[T, K]) In(namespace string, value K) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		source := ix.informer.source
		for n, st := range source.streams {
			if st.mayHold(namespace) && !ix.each(n, namespace, value, yield) {
				return
			}
		}
		finish(yield, source.incomplete(source.streamsOf(namespace)))
	}
}

// each yields the objects of one stream, and reports whether to continue.
func (ix *Index[T, K]) each(n int, namespace string, value K, yield func(T, error) bool) bool {
	st, use := ix.informer.source.streams[n], private
	found, maybe, ready := ix.shards[n].find(st.store, namespace, value)
	if !ready {
		use, maybe = ix.informer.source.beginScan(ix.informer.shared), st.store.Snapshot(namespace)
	}
	for _, item := range found {
		if !yield(decode(ix.informer, st, item, use)) {
			return false
		}
	}
	for _, item := range maybe {
		obj, err := decode(ix.informer, st, item, use)
		if err == nil {
			if values, _ := ix.call(obj); !slices.Contains(values, value) {
				continue
			}
		}
		if !yield(obj, err) {
			return false
		}
	}
	return true
}

// Keys returns the keys of the objects with a value, in no order. Its errors are those of Err, ErrClosed if the source
// was closed before it had every object, and, beside the keys, a *DecodeError for each object that cannot be decoded.
func (ix *Index[T, K]) Keys(value K) ([]Key, error) {
	var keys []Key
	ready, err := ix.look(func(sh *shard[K]) {
		if b := sh.keys[value]; b != nil {
			b.each(func(k store.Key) { keys = append(keys, Key(k)) })
		}
	})
	if !ready {
		return nil, err
	}
	return keys, err
}

// Values returns all values, in no order, with the errors of Keys.
func (ix *Index[T, K]) Values() ([]K, error) {
	seen := map[K]struct{}{}
	ready, err := ix.look(func(sh *shard[K]) {
		for value := range sh.keys {
			seen[value] = struct{}{}
		}
	})
	if !ready {
		return nil, err
	}
	return slices.Collect(maps.Keys(seen)), err
}

// look calls f with every shard and returns the errors of Keys; it stops at a shard that is not ready.
func (ix *Index[T, K]) look(f func(*shard[K])) (ready bool, err error) {
	source := ix.informer.source
	var errs []error
	for n, st := range source.streams {
		maybe, ready := ix.shards[n].look(st.store, f)
		if !ready {
			return false, cmp.Or(ix.Err(), ErrIndexBuilding)
		}
		for _, item := range maybe {
			if _, err := decode(ix.informer, st, item, passing); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return true, errors.Join(append(errs, source.incomplete(source.streams))...)
}

// Err returns ErrIndexBuilding until the index covers every object in the cache, and ErrClosed if it never will: after
// Close, or if the source was closed first. Whether the cache has every object is a different question: see
// Informer.Wait; until then, lookups return ErrNotSynced.
func (ix *Index[T, K]) Err() error {
	switch {
	case ix.closed.Load():
		return ErrClosed
	case ix.pending.Load() == 0:
		return nil
	case ix.informer.source.isClosed():
		return ErrClosed
	}
	return ErrIndexBuilding
}

// Failed returns the number of versions for which the index's function panicked.
func (ix *Index[T, K]) Failed() uint64 { return ix.fails.Load() }

// Close removes the index.
func (ix *Index[T, K]) Close() {
	if !ix.closed.CompareAndSwap(false, true) {
		return
	}
	ix.informer.source.removeIndexer(ix.slot)
}

// call calls the user's function and turns a panic into an error.
func (ix *Index[T, K]) call(obj T) (values []K, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("index %s: %w", ix.name, panicked(p))
		}
	}()
	// A value that is not equal to itself could never be found. An interface value that is not comparable panics
	// here instead of in the map.
	return slices.DeleteFunc(slices.Clone(ix.values(obj)), func(v K) bool { return !equal(v, v) }), nil
}

func equal[K comparable](a, b K) bool { return a == b }

// compute returns the values of an object, for its shard.
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
	for i := range values {
		cloneStrings(&values[i])
	}
	return computed[K]{&ix.pending, values, !ok}, err
}

// cloneStrings copies the strings of a value that an index keeps: each may be a substring of an object's whole text, which
// it would keep in memory.
func cloneStrings[K comparable](value *K) {
	if text, ok := any(value).(*string); ok {
		*text = strings.Clone(*text)
		return
	}
	cloneStringsIn(reflect.ValueOf(value).Elem())
}

// cloneStringsIn is cloneStrings for other types; it leaves unexported fields alone.
func cloneStringsIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(strings.Clone(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			cloneStringsIn(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			cloneStringsIn(v.Index(i))
		}
	case reflect.Interface:
		if inner := v.Elem(); inner.IsValid() && v.CanSet() {
			own := reflect.New(inner.Type()).Elem()
			own.Set(inner)
			cloneStringsIn(own)
			v.Set(own)
		}
	default:
	}
}

// computed holds an object's values, possibly none.
type computed[K comparable] struct {
	of          *atomic.Int64 // identifies the index, by its counter of pending shards
	values      []K
	undecodable bool
}

func (ix *Index[T, K]) status() indexStatus {
	return indexStatus{Name: ix.name, Failed: ix.Failed(), Err: ix.Err()}
}
