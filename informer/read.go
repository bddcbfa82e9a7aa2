package informer

import (
	"errors"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// ErrNotFound is returned by Read for an object that is not there.
var ErrNotFound = errors.New("informer: no such object")

// Get returns an object; namespace is empty for resources without. One that cannot be decoded is
// counted (Status.DecodeErrors) and not found; Read says why.
func (i *Informer[T]) Get(namespace, name string) (obj T, ok bool) {
	obj, err := i.Read(Key{namespace, name})
	return obj, err == nil
}

// Read returns an object, ErrNotFound, or why it cannot be decoded.
func (i *Informer[T]) Read(k Key) (obj T, err error) {
	for _, st := range i.source.reaching(k.Namespace) {
		if v := st.store.Get(store.Key(k)); v != nil {
			return decode[T](i, st, store.Item{Key: store.Key(k), V: v}, private)
		}
	}
	return obj, ErrNotFound
}

// All returns every object, in no order: those that there were at one moment of each stream,
// decoded one after the other as the loop goes on. Objects that cannot be decoded are counted
// (Status.DecodeErrors) and left out.
func (i *Informer[T]) All() iter.Seq[T] { return i.List("", nil) }

// List is All within a namespace, and with a label selector; empty and nil select everything.
func (i *Informer[T]) List(namespace string, selector labels.Selector) iter.Seq[T] {
	return func(yield func(T) bool) {
		whole := i.source.beginScan(i.shared)
		for _, st := range i.source.reaching(namespace) {
			for _, item := range st.store.Snapshot(namespace) {
				if !i.source.selects(i.codec, selector, item.V) {
					continue
				}
				if obj, err := decode[T](i, st, item, whole); err == nil && !yield(obj) {
					return
				}
			}
		}
	}
}

// Keys returns the keys of all objects, in no order.
func (i *Informer[T]) Keys() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for _, st := range i.source.streams {
			for _, item := range st.store.Snapshot("") {
				if !yield(Key(item.Key)) {
					return
				}
			}
		}
	}
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

// selects reads the labels from the bytes, unless the object is kept decoded: that costs less than
// decoding what is not wanted.
func (s *Source) selects(c *codec, selector labels.Selector, v *compact.Version) bool {
	if selector == nil || selector.Empty() {
		return true
	}
	if kept, ok := s.hot.Get(v, c); ok {
		if obj, ok := kept.(Object); ok {
			return selector.Matches(labels.Set(obj.GetLabels()))
		}
	}
	scratch := borrow()
	defer scratch.giveBack()
	raw, err := v.Append(scratch.b[:0])
	if err != nil {
		return true // that it cannot be read shows when it is decoded
	}
	scratch.b = raw
	set := labels.Set{}
	err = wire.ReadLabels(v.Format(), raw, func(key, value []byte) bool {
		set[string(key)] = string(value)
		return true
	})
	return err != nil || selector.Matches(set)
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
	o, err := i.source.object(st, i.codec, item, i.shared, u)
	if err != nil {
		return obj, err
	}
	obj, ok := o.(T)
	if !ok {
		return obj, fmt.Errorf("decode object: it is a %T", o)
	}
	return obj, nil
}

// object decodes a version, or takes it from those that are kept decoded.
func (s *Source) object(st *stream, c *codec, item store.Item, shared bool, u use) (Object, error) {
	v := item.V
	if kept, ok := s.hot.Get(v, c); ok {
		obj, ok := kept.(Object)
		switch {
		case !ok:
			return nil, fmt.Errorf("decode object: kept as a %T", kept)
		case shared:
			return obj, nil
		}
		return copyOf(obj)
	}
	obj, size, err := st.decode(c, item)
	if err != nil {
		return nil, err
	}
	switch {
	case shared && u != passing:
		return s.keep(v, c, obj, size, u == scanning), nil
	case !shared && (u == keeping || u == scanning || u == private && s.recent.again(v)):
		kept, err := copyOf(obj)
		if err != nil {
			return nil, err
		}
		s.keep(v, c, kept, size, u == scanning)
	}
	return obj, nil
}

func copyOf(obj Object) (Object, error) {
	o, ok := obj.DeepCopyObject().(Object)
	if !ok {
		return nil, fmt.Errorf("copy object: a copy of %T has another type", obj)
	}
	return o, nil
}

// decode unpacks and decodes a version; what goes wrong is counted and told.
func (s *stream) decode(c *codec, item store.Item) (obj Object, size int64, err error) {
	scratch := borrow()
	defer scratch.giveBack()
	raw, err := item.V.Append(scratch.b[:0])
	if err == nil {
		scratch.b = raw
		obj, err = s.decodeRaw(c, item.Key, item.V.Format(), raw)
	}
	return obj, c.weigh(item.V.Format(), len(raw)), err
}

// decodeRaw decodes bytes, which it does not keep.
func (s *stream) decodeRaw(c *codec, k store.Key, f wire.Format, raw []byte) (Object, error) {
	obj, lossy, err := c.decode(f, raw)
	switch {
	case err != nil:
		err = fmt.Errorf("decode %s %s/%s: %w", s.id.Resource.GroupResource(), k.Namespace, k.Name, err)
		s.counts.decodeErrors.Add(1)
		s.hooks().decodeError(s.id, err)
	case lossy:
		s.counts.lossyDecodes.Add(1)
		s.hooks().lossyDecode(s.id)
	}
	return obj, err
}
