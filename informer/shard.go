package informer

import (
	"sync/atomic"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// shard is the part of an index for one stream. The store's lock guards it.
type shard[K comparable] struct {
	values map[store.Key][]K // values of each object that has any
	keys   map[K]*valueObjects[K]
	// undecodable holds objects whose values are unknown.
	undecodable map[store.Key]struct{}
	todo        map[store.Key]struct{} // objects that are not indexed yet; nil if empty
	// pending counts the index's incomplete shards; work starts filling this one. closed means that the index is
	// being removed.
	pending *atomic.Int64
	work    func()
	closed  *atomic.Bool
}

func newShard[K comparable](pending *atomic.Int64, closed *atomic.Bool) *shard[K] {
	return &shard[K]{values: map[store.Key][]K{}, keys: map[K]*valueObjects[K]{}, undecodable: map[store.Key]struct{}{}, pending: pending, closed: closed}
}

// Set implements store.Index.
func (s *shard[K]) Set(k store.Key, values any) {
	s.drop(k)
	c, ok := values.(computed[K])
	if !ok || c.of != s.pending { // the version was read before the index was added
		s.later(k)
		return
	}
	s.done(k)
	if c.undecodable {
		s.undecodable[k] = struct{}{}
	}
	if len(c.values) == 0 {
		return
	}
	for i, v := range c.values {
		b := s.keys[v]
		if b == nil {
			b = &valueObjects[K]{value: []K{v}}
			s.keys[v] = b
		}
		b.add(k)
		c.values[i] = b.value[0]
		if len(c.values) == 1 {
			c.values = b.value
		}
	}
	s.values[k] = c.values
}

// valueObjects is the set of objects with a value.
type valueObjects[K comparable] struct {
	bucket
	value []K // the value alone, shared by objects with no other value
}

// Delete implements store.Index.
func (s *shard[K]) Delete(k store.Key) {
	s.drop(k)
	s.done(k)
}

// Clear implements store.Index.
func (s *shard[K]) Clear() {
	clear(s.values)
	clear(s.keys)
	clear(s.undecodable)
	for k := range s.todo {
		s.done(k)
	}
}

// ready reports whether the shard covers every object of its stream.
func (s *shard[K]) ready() bool { return s.todo == nil && !s.closed.Load() }

func (s *shard[K]) drop(k store.Key) {
	for _, v := range s.values[k] {
		if b := s.keys[v]; b != nil && b.remove(k) == 0 {
			delete(s.keys, v)
		}
	}
	delete(s.values, k)
	delete(s.undecodable, k)
}

func (s *shard[K]) later(k store.Key) {
	if s.todo == nil {
		s.todo = map[store.Key]struct{}{}
		s.pending.Add(1)
		s.work()
	}
	s.todo[k] = struct{}{}
}

func (s *shard[K]) done(k store.Key) {
	if s.todo == nil {
		return
	}
	delete(s.todo, k)
	if len(s.todo) == 0 {
		s.todo = nil
		s.pending.Add(-1)
	}
}

// pendingKeys returns at most n objects that are not indexed yet.
func (s *shard[K]) pendingKeys(n int) []store.Key {
	var keys []store.Key
	for k := range s.todo {
		if len(keys) == n {
			break
		}
		keys = append(keys, k)
	}
	return keys
}

// find returns the objects of a namespace (empty: all) that have a value, and those that may have it; ready is false, and
// the results empty, if the shard is not ready.
func (s *shard[K]) find(st *store.Store, namespace string, value K) (found, maybe []store.Item, ready bool) {
	st.View(func(get func(store.Key) *compact.Version) {
		if ready = s.ready(); !ready {
			return
		}
		if b := s.keys[value]; b != nil {
			if namespace == "" {
				found = make([]store.Item, 0, b.len())
			}
			b.each(func(k store.Key) { found = take(found, namespace, k, get) })
		}
		for k := range s.undecodable {
			maybe = take(maybe, namespace, k, get)
		}
	})
	return found, maybe, ready
}

// look calls f with the shard, if it is ready, and returns the objects that cannot be decoded.
func (s *shard[K]) look(st *store.Store, f func(*shard[K])) (undecodable []store.Item, ready bool) {
	st.View(func(get func(store.Key) *compact.Version) {
		if ready = s.ready(); !ready {
			return
		}
		f(s)
		for k := range s.undecodable {
			undecodable = take(undecodable, "", k, get)
		}
	})
	return undecodable, ready
}

// take appends an object if it is in the namespace.
func take(to []store.Item, namespace string, k store.Key, get func(store.Key) *compact.Version) []store.Item {
	if namespace != "" && k.Namespace != namespace {
		return to
	}
	v := get(k)
	if v == nil {
		return to
	}
	return append(to, store.Item{Key: k, V: v})
}

// bucket is a set of keys, mostly one or a few.
type bucket struct {
	few  []store.Key
	many map[store.Key]struct{} // used once there are more than maxFew
}

const maxFew = 8

func (b *bucket) len() int { return len(b.few) + len(b.many) }

func (b *bucket) add(k store.Key) {
	for _, have := range b.few {
		if have == k {
			return
		}
	}
	switch {
	case b.many != nil:
		b.many[k] = struct{}{}
	case len(b.few) < maxFew:
		b.few = append(b.few, k)
	default:
		b.many = make(map[store.Key]struct{}, 2*maxFew)
		for _, have := range b.few {
			b.many[have] = struct{}{}
		}
		b.many[k], b.few = struct{}{}, nil
	}
}

// remove removes a key and returns how many are left.
func (b *bucket) remove(k store.Key) int {
	delete(b.many, k)
	for i, have := range b.few {
		if have == k {
			b.few[i] = b.few[len(b.few)-1]
			b.few = b.few[:len(b.few)-1]
			break
		}
	}
	return b.len()
}

func (b *bucket) each(f func(store.Key)) {
	for _, k := range b.few {
		f(k)
	}
	for k := range b.many {
		f(k)
	}
}
