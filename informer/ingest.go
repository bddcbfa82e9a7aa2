package informer

import (
	"slices"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// buildChunk is how many objects an index is built of before others get a turn.
const buildChunk = 256

// indexer is an Index as its Source sees it.
type indexer struct {
	codec   *codec
	compute func(Object) (any, error)
	// read is compute of an object's bytes; false: it is to be decoded.
	read func(f wire.Format, raw []byte) (values any, ok bool)
	// shard is the index's part of a stream.
	shard func(stream int) indexShard
	// status describes the index.
	status func() indexStatus
	slot   int // the same in every store, since they have the same indexes; see store.AddIndex
}

// indexShard is a shard, whatever its values are.
type indexShard interface {
	store.Index
	some(n int) []store.Key
}

// addIndexer starts an index: what comes in from now on is computed as it comes, what is there is
// left to do.
func (s *Source) addIndexer(ix *indexer) {
	s.indexing.Lock()
	defer s.indexing.Unlock()
	list := slices.Clone(s.indexes())
	if ix.slot = slices.Index(list, nil); ix.slot < 0 {
		ix.slot = len(list)
		list = append(list, nil)
	}
	for i, st := range s.streams {
		st.store.AddIndex(ix.shard(i)) // from here on others may build it
	}
	list[ix.slot] = ix
	s.indexers.Store(&list)
	for _, st := range s.streams {
		for _, item := range st.store.Snapshot("") {
			st.store.SetIndex(ix.slot, item.Key, item.V, nil)
		}
	}
}

func (s *Source) removeIndexer(slot int) {
	s.indexing.Lock()
	defer s.indexing.Unlock()
	list := slices.Clone(s.indexes())
	list[slot] = nil
	s.indexers.Store(&list)
	for _, st := range s.streams {
		st.store.RemoveIndex(slot)
	}
}

// indexes are those of the source, by slot; nil where one was removed.
func (s *Source) indexes() []*indexer {
	if list := s.indexers.Load(); list != nil {
		return *list
	}
	return nil
}

// build computes what an index does not know of one stream, until nothing is left.
func (s *stream) build(ix *indexer, shard indexShard) {
	for {
		var todo []store.Item
		s.store.View(func(get func(store.Key) *compact.Version) {
			for _, k := range shard.some(buildChunk) {
				todo = append(todo, store.Item{Key: k, V: get(k)})
			}
		})
		if len(todo) == 0 || s.source.isClosed() {
			return
		}
		for _, item := range todo {
			s.store.SetIndex(ix.slot, item.Key, item.V, s.indexed(ix, item))
		}
	}
}

// indexed computes the values of a stored object; one that cannot be decoded has none.
func (s *stream) indexed(ix *indexer, item store.Item) any {
	scratch := borrow()
	defer scratch.giveBack()
	raw, err := item.V.Append(scratch.b[:0])
	if err != nil {
		_ = s.undecodable(item.Key, err)
		return s.compute(ix, Key(item.Key), nil)
	}
	scratch.b = raw
	if values, ok := ix.read(item.V.Format(), raw); ok {
		return values
	}
	obj, _, err := s.decodeRaw(ix.codec, item.Key, item.V.Format(), raw, s.source.parts)
	if err != nil {
		obj = nil
	}
	s.source.cluster.mutations.indexes(s.source, ix, item.V, obj)
	return s.compute(ix, Key(item.Key), obj)
}

// compute returns the values of an object; nil is one that cannot be decoded.
func (s *stream) compute(ix *indexer, k Key, obj Object) any {
	values, err := ix.compute(obj)
	if err != nil {
		s.hooks().indexError(s.id, k, err)
	}
	return values
}

// derive adds what the source's indexes and storage want of an object: at most one decode for each
// Go type.
func (s *stream) derive(c *store.Change, raw []byte) {
	indexes, shared := s.source.indexes(), s.source.sharing.types()
	live := s.source.live()
	if s.source.labelled.Load() {
		c.Labels = labelsIn(c.V.Format(), raw)
	}
	if len(indexes) == 0 && len(shared) == 0 && live == nil {
		return
	}
	d := decoding{stream: s, key: c.Key, format: c.V.Format(), raw: raw}
	for slot, ix := range indexes {
		if ix == nil {
			continue
		}
		if c.Index == nil {
			c.Index = make([]any, len(indexes))
		}
		values, ok := ix.read(d.format, raw)
		if !ok {
			obj := d.as(ix.codec)
			s.source.cluster.mutations.indexes(s.source, ix, c.V, obj)
			values = s.compute(ix, Key(c.Key), obj)
		}
		c.Index[slot] = values
	}
	for _, c := range shared {
		d.as(c)
	}
	if live != nil {
		d.as(live)
	}
	synced := s.store.Synced()
	for i, c2 := range d.codecs {
		if d.objs[i] == nil || !synced && c2 != live {
			continue // it cannot be decoded, or is one of a first list, which would only pass through
		}
		s.source.keep(c.V, c2, d.objs[i], d.sizes[i], false)
	}
}

// decoding decodes one object for several users. Nearly always there is one Go type.
type decoding struct {
	stream *stream
	key    store.Key
	format wire.Format
	raw    []byte
	codecs []*codec
	objs   []Object // nil: it cannot be decoded
	sizes  []int64
}

func (d *decoding) as(c *codec) Object {
	if i := slices.Index(d.codecs, c); i >= 0 {
		return d.objs[i]
	}
	obj, size, ok := Object(nil), int64(0), false
	if d.format == wire.Protobuf {
		obj, size, ok = d.stream.decodeFrom(c, d.raw, d.stream.store.Get(d.key))
	}
	if !ok {
		var err error
		if obj, size, err = d.stream.decodeRaw(c, d.key, d.format, d.raw, d.stream.source.parts); err != nil {
			obj = nil
		}
	}
	d.codecs, d.objs, d.sizes = append(d.codecs, c), append(d.objs, obj), append(d.sizes, size)
	return obj
}
