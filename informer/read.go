package informer

import (
	"cmp"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Closed is not deleted, and undecodable is not absent. A program that deletes what has no object in the cache must
// not do so because it is being stopped. So a closed store keeps its last state, and a store that never had a state
// ends every loop with ErrClosed. An object that cannot be decoded is an error in its place, and in every index
// lookup, since its indexed value is unknown.

// DecodeError is the error of an object that exists and cannot be decoded. Loops over objects yield it
// in the object's place and go on.
type DecodeError struct {
	Stream Stream
	Key    Key
	Err    error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s %s/%s: %v", e.Stream.Resource.GroupResource(), e.Key.Namespace, e.Key.Name, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// Get returns an object; namespace is empty for resources without. Its errors are ErrNotFound, a
// *DecodeError and, where it cannot know whether there is such an object, ErrNotSynced (wait for it: Wait,
// Cluster.WaitForSync) or, if the source was closed before, ErrClosed.
func (i *Informer[T]) Get(namespace, name string) (obj T, err error) {
	k := store.Key{Namespace: namespace, Name: name}
	streams := i.source.reaching(namespace)
	for _, st := range streams {
		if v := st.store.Get(k); v != nil {
			return decode[T](i, st, store.Item{Key: k, V: v}, private)
		}
	}
	return obj, cmp.Or(i.source.incomplete(streams), ErrNotFound)
}

// All returns every object, in no order: those that there were at one moment of each stream, decoded
// one after the other as the loop goes on. In the place of an object that cannot be decoded it yields
// a *DecodeError. Where the source does not have every object yet, ErrNotSynced comes last, or ErrClosed if
// it was closed before.
func (i *Informer[T]) All() iter.Seq2[T, error] { return i.List("", nil) }

// List is All within a namespace, and with a label selector; empty and nil select everything. The first selector has the
// source read the labels of every object; from then on it keeps an index of them.
func (i *Informer[T]) List(namespace string, selector labels.Selector) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		whole := i.source.beginScan(i.shared)
		streams := i.source.reaching(namespace)
		for _, st := range streams {
			if !i.list(st, namespace, selector, whole, yield) {
				return
			}
		}
		finish(yield, i.source.incomplete(streams))
	}
}

// list yields the selected objects of one stream, and tells whether to go on.
func (i *Informer[T]) list(st *stream, namespace string, selector labels.Selector, u use, yield func(T, error) bool) bool {
	var items, unsure []store.Item
	if selector == nil || selector.Empty() {
		items = st.store.Snapshot(namespace)
	} else {
		items, unsure = st.selected(namespace, selector)
	}
	for _, item := range items {
		if !yield(decode[T](i, st, item, u)) {
			return false
		}
	}
	for _, item := range unsure {
		obj, err := decode[T](i, st, item, u)
		if err == nil && !selector.Matches(labels.Set(obj.GetLabels())) {
			continue
		}
		if !yield(obj, err) {
			return false
		}
	}
	return true
}

// Keys returns the keys of all objects, in no order, also of those that cannot be decoded. ErrNotSynced
// and ErrClosed come last as in All.
func (i *Informer[T]) Keys() iter.Seq2[Key, error] {
	return func(yield func(Key, error) bool) {
		for _, st := range i.source.streams {
			for _, item := range st.store.Snapshot("") {
				if !yield(Key(item.Key), nil) {
					return
				}
			}
		}
		finish(yield, i.source.incomplete(i.source.streams))
	}
}

// finish ends a loop with err, if there is one.
func finish[V any](yield func(V, error) bool, err error) {
	if err != nil {
		var none V
		yield(none, err)
	}
}

// incomplete returns ErrNotSynced while one of the streams has no state yet, and ErrClosed once it never will: what
// is missing there says nothing.
func (s *Source) incomplete(streams []*stream) error {
	for _, st := range streams {
		switch {
		case st.Status().Loaded:
		case s.isClosed():
			return ErrClosed
		default:
			return ErrNotSynced
		}
	}
	return nil
}

// Len is the number of objects.
func (i *Informer[T]) Len() int {
	n := 0
	for _, st := range i.source.streams {
		objects, _ := st.store.Stat()
		n += objects
	}
	return n
}

// use says what becomes of a decoded object.
type use uint8

const (
	// private objects are the caller's; what is asked for twice is kept decoded.
	private use = iota
	// passing objects are the caller's, and nothing is kept.
	passing
	// keeping objects are kept decoded beside what the caller gets.
	keeping
	// scanning is keeping, of what there is room for.
	scanning
)

// decode makes the object that a version is.
func decode[T Object](i *Informer[T], st *stream, item store.Item, u use) (obj T, err error) {
	return decodeNear(i, st, item, nil, u)
}

// decodeNear is decode with another version of the object, as in Source.object.
func decodeNear[T Object](i *Informer[T], st *stream, item store.Item, near *compact.Version, u use) (obj T, err error) {
	o, err := i.source.object(st, i.codec, item, near, i.shared, u)
	if err != nil {
		return obj, err
	}
	obj, ok := o.(T)
	if !ok {
		return obj, st.undecodable(item.Key, fmt.Errorf("it is a %T", o))
	}
	if i.shared && i.source.cluster.mutations.wants() {
		i.gave(item.V, o, u)
	}
	return obj, nil
}

// object decodes a version, or takes it from those that are kept decoded. Near is another version of the object, or nil:
// what is the same in both need not be decoded again, if near is kept.
func (s *Source) object(st *stream, c *codec, item store.Item, near *compact.Version, shared bool, u use) (Object, error) {
	v := item.V
	if kept, ok := s.hot.Get(v, c); ok {
		obj, ok := kept.(Object)
		switch {
		case !ok:
			return nil, st.undecodable(item.Key, fmt.Errorf("it is kept as a %T", kept))
		case shared:
			return obj, nil
		}
		return st.copyOf(item.Key, obj)
	}
	keep := u == keeping || u == scanning || u == private && (shared || s.recent.again(v))
	if !shared && !keep {
		obj, _, err := st.decode(c, item, nil)
		return obj, err
	}
	obj, size, err := st.decodeNear(c, item, near)
	if err != nil {
		return nil, err
	}
	if keep {
		obj = s.keep(v, c, obj, size, u == scanning)
	}
	if shared {
		return obj, nil
	}
	return st.copyOf(item.Key, obj)
}

// copyOf copies an object; what goes wrong is counted and reported.
func (s *stream) copyOf(k store.Key, obj Object) (Object, error) {
	o, err := deepCopy(obj)
	if err != nil {
		return nil, s.undecodable(k, err)
	}
	return o, nil
}

func deepCopy(obj Object) (o Object, err error) {
	defer func() {
		if p := recover(); p != nil {
			o, err = nil, fmt.Errorf("copy object: %w", panicked(p))
		}
	}()
	o, ok := obj.DeepCopyObject().(Object)
	if !ok {
		return nil, fmt.Errorf("copy object: a copy of %T has another type", obj)
	}
	return o, nil
}

// decode unpacks and decodes a version; what goes wrong is counted and reported. With a table the object shares parts
// with others, and nobody may change it.
func (s *stream) decode(c *codec, item store.Item, parts *plans.Table) (obj Object, size int64, err error) {
	scratch := borrow()
	defer scratch.giveBack()
	raw, err := item.V.Append(scratch.b[:0])
	if err != nil {
		return nil, 0, s.undecodable(item.Key, err)
	}
	scratch.b = raw
	return s.decodeRaw(c, item.Key, item.V.Format(), raw, parts)
}

// decodeNear is decode with the source's table, and another version of the object, or nil.
func (s *stream) decodeNear(c *codec, item store.Item, near *compact.Version) (obj Object, size int64, err error) {
	if near != nil && item.V.Format() == wire.Protobuf {
		scratch := borrow()
		defer scratch.giveBack()
		raw, err := item.V.Append(scratch.b[:0])
		if err != nil {
			return nil, 0, s.undecodable(item.Key, err)
		}
		scratch.b = raw
		if obj, size, ok := s.decodeFrom(c, raw, near); ok {
			return obj, size, nil
		}
	}
	return s.decode(c, item, s.source.parts)
}

// decodeFrom decodes protobuf with another version of the object, if that is kept decoded; false: decode it.
func (s *stream) decodeFrom(c *codec, raw []byte, near *compact.Version) (obj Object, size int64, ok bool) {
	if near == nil || c.near == nil || near.Format() != wire.Protobuf || s.counts.lossyDecodes.Load() > 0 {
		return nil, 0, false // a loss in what is taken over would not be counted
	}
	base, ok := s.source.hot.Get(near, c)
	if !ok {
		return nil, 0, false
	}
	scratch := borrow()
	defer scratch.giveBack()
	was, err := near.Append(scratch.b[:0])
	if err != nil {
		return nil, 0, false
	}
	scratch.b = was
	obj, r, ok := c.near(s.source.parts, raw, plans.Base{Raw: was, Obj: base})
	if !ok || r.Lossy {
		return nil, 0, false
	}
	return obj, r.Size, true
}

// decodeRaw decodes bytes, which it does not keep.
func (s *stream) decodeRaw(c *codec, k store.Key, f wire.Format, raw []byte, parts *plans.Table) (obj Object, size int64, err error) {
	obj, r, err := c.read(parts, f, raw)
	switch {
	case err != nil:
		return nil, 0, s.undecodable(k, err)
	case r.Lossy:
		s.counts.lossyDecodes.Add(1)
		s.hooks().lossyDecode(s.id)
	}
	return obj, r.Size, nil
}

// undecodable counts and reports that an object cannot be decoded.
func (s *stream) undecodable(k store.Key, err error) error {
	err = &DecodeError{Stream: s.id, Key: Key(k), Err: err}
	s.counts.decodeErrors.Add(1)
	s.hooks().decodeError(s.id, err)
	return err
}
