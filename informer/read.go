package informer

import (
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Closed is not deleted, and undecodable is not absent. A program that deletes what has no object in the cache must
// not do so because it is being stopped. So a closed store keeps its last state, and a store that never had a state
// ends every loop with ErrClosed. An object that cannot be decoded is an error in its place, and in every index
// lookup, since its indexed value is unknown.

// DecodeError is the error of an object that exists but cannot be decoded. Loops over objects yield it in the
// object's place and continue.
type DecodeError struct {
	Stream Stream
	Key    Key
	Err    error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s %s/%s: %v", e.Stream.Resource.GroupResource(), e.Key.Namespace, e.Key.Name, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// notFoundError says that an object does not exist: it is ErrNotFound, and a 404 for apierrors.IsNotFound and functions
// that use it, such as controller-runtime's client.IgnoreNotFound.
type notFoundError struct {
	resource schema.GroupResource
	key      Key
}

func (e *notFoundError) Error() string { return fmt.Sprintf("%s %q not found", e.resource, e.key) }

func (e *notFoundError) Is(target error) bool { return target == ErrNotFound }

// Status implements apierrors.APIStatus.
func (e *notFoundError) Status() metav1.Status {
	return apierrors.NewNotFound(e.resource, e.key.Name).Status()
}

// Get returns an object; namespace is empty for cluster-scoped resources. Its errors are ErrNotFound, which is also a 404
// for apierrors.IsNotFound, a *DecodeError and, while it cannot know whether the object exists, ErrNotSynced (see Wait and
// Cluster.Wait), or ErrClosed if the source was closed before it had a state.
func (i *Informer[T]) Get(namespace, name string) (obj T, err error) {
	k := store.Key{Namespace: namespace, Name: name}
	streams := i.source.streamsOf(namespace)
	for _, st := range streams {
		if v := st.store.Get(k); v != nil {
			return decode[T](i, st, store.Item{Key: k, V: v}, private)
		}
	}
	if err := i.source.incomplete(streams); err != nil {
		return obj, err
	}
	return obj, &notFoundError{i.source.gvr.GroupResource(), Key(k)}
}

// All returns every object, in no order: a snapshot of each stream, decoded one by one as the loop runs. In place of
// an object that cannot be decoded it yields a *DecodeError. If the source does not have every object yet, the last
// error is ErrNotSynced, or ErrClosed if the source was closed before.
//
// A loop with one variable compiles, and receives nil in place of each error. There is no form without the error: a program
// that deletes what it does not find would also delete what it could not read, or had not read yet. See Collect.
func (i *Informer[T]) All() iter.Seq2[T, error] { return i.List("", nil) }

// List is All within a namespace and with a label selector; empty and nil select everything. The first call with a
// selector reads the labels of every object; from then on the source keeps an index of them.
func (i *Informer[T]) List(namespace string, selector labels.Selector) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		whole := i.source.beginScan(i.shared)
		streams := i.source.streamsOf(namespace)
		for _, st := range streams {
			if !i.list(st, namespace, selector, whole, yield) {
				return
			}
		}
		finish(yield, i.source.incomplete(streams))
	}
}

// list yields the selected objects of one stream, and reports whether to continue.
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

// Keys returns the keys of all objects, in no order, including objects that cannot be decoded. ErrNotSynced and
// ErrClosed come last, as in All.
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

// finish yields err as a loop's last pair, unless it is nil.
func finish[V any](yield func(V, error) bool, err error) {
	if err != nil {
		var none V
		yield(none, err)
	}
}

// incomplete returns ErrNotSynced while one of the streams has no state, or ErrClosed once it will never have one: an
// object's absence then proves nothing.
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

// Len returns the number of objects.
func (i *Informer[T]) Len() int {
	n := 0
	for _, st := range i.source.streams {
		objects, _ := st.store.Stat()
		n += objects
	}
	return n
}

// use is what happens to a decoded object.
type use uint8

const (
	// private objects belong to the caller; a version that is read twice is kept decoded.
	private use = iota
	// passing objects belong to the caller; nothing is kept.
	passing
	// keeping objects are kept decoded, beside the caller's copy.
	keeping
	// scanning is keeping, as far as the budget allows.
	scanning
)

// decode decodes a version.
func decode[T Object](i *Informer[T], st *stream, item store.Item, u use) (obj T, err error) {
	return decodeWithBase(i, st, item, nil, u)
}

// decodeWithBase is decode with a base, as in Source.object.
func decodeWithBase[T Object](i *Informer[T], st *stream, item store.Item, base *compact.Version, u use) (obj T, err error) {
	o, err := i.source.object(st, i.codec, item, base, i.shared, u)
	if err != nil {
		return obj, err
	}
	obj, ok := o.(T)
	if !ok {
		return obj, st.undecodable(item.Key, fmt.Errorf("got a %T", o))
	}
	if i.shared && i.source.cluster.mutations.wants() {
		i.handedOut(item.V, o, u)
	}
	return obj, nil
}

// object decodes a version, or returns a decoded one that is kept. base is another version of the object, or nil: if
// it is kept decoded, equal parts need not be decoded again.
func (s *Source) object(st *stream, c *codec, item store.Item, base *compact.Version, shared bool, u use) (Object, error) {
	v := item.V
	if kept, ok := s.hot.Get(v, c); ok {
		obj, ok := kept.(Object)
		switch {
		case !ok:
			return nil, st.undecodable(item.Key, fmt.Errorf("kept as a %T", kept))
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
	obj, size, err := st.decodeWithBase(c, item, base)
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

// copyOf copies an object; it counts and reports failures.
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

// decode unpacks and decodes a version; it counts and reports failures. With a table, the object shares parts with
// others and is read-only.
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

// decodeWithBase is decode with the source's table and another version of the object, or nil.
func (s *stream) decodeWithBase(c *codec, item store.Item, base *compact.Version) (obj Object, size int64, err error) {
	if base != nil && item.V.Format() == wire.Protobuf {
		scratch := borrow()
		defer scratch.giveBack()
		raw, err := item.V.Append(scratch.b[:0])
		if err != nil {
			return nil, 0, s.undecodable(item.Key, err)
		}
		scratch.b = raw
		if obj, size, ok := s.decodeFrom(c, raw, base); ok {
			return obj, size, nil
		}
	}
	return s.decode(c, item, s.source.parts)
}

// decodeFrom decodes protobuf, reusing parts of another version of the object if that is kept decoded; if it returns
// false, decode without a base.
func (s *stream) decodeFrom(c *codec, raw []byte, base *compact.Version) (obj Object, size int64, ok bool) {
	if base == nil || c.decodeFrom == nil || base.Format() != wire.Protobuf || s.counts.lossyDecodes.Load() > 0 {
		return nil, 0, false // a loss in a reused part would not be counted
	}
	kept, ok := s.source.hot.Get(base, c)
	if !ok {
		return nil, 0, false
	}
	scratch := borrow()
	defer scratch.giveBack()
	was, err := base.Append(scratch.b[:0])
	if err != nil {
		return nil, 0, false
	}
	scratch.b = was
	obj, r, ok := c.decodeFrom(s.source.parts, raw, plans.Base{Raw: was, Obj: kept})
	if !ok || r.Lossy {
		return nil, 0, false
	}
	return obj, r.Size, true
}

// decodeRaw decodes bytes; it does not retain them.
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

// undecodable counts and reports a decode error.
func (s *stream) undecodable(k store.Key, err error) error {
	err = &DecodeError{Stream: s.id, Key: Key(k), Err: err}
	s.counts.decodeErrors.Add(1)
	s.hooks().decodeError(s.id, err)
	return err
}
