package informer

import (
	"slices"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// buildChunk is how many objects are added to a new index under one lock.
const buildChunk = 256

// indexer is the Source's view of an Index.
type indexer struct {
	codec   *codec
	compute func(Object) (any, error)
	// read computes the values from an object's bytes; false: the object must be decoded.
	read func(f wire.Format, raw []byte) (values any, ok bool)
	// shard returns the index's shard of a stream.
	shard func(stream int) indexShard
	// status describes the index.
	status func() indexStatus
	slot   int // equal in every store, since all have the same indexes; see store.AddIndex
}

// indexShard is a shard with any type of values.
type indexShard interface {
	store.Index
	pendingKeys(n int) []store.Key
}

// addIndexer starts an index: new versions are indexed as they arrive, cached ones in the background.
func (s *Source) addIndexer(ix *indexer) {
	s.indexing.Lock()
	defer s.indexing.Unlock()
	list := slices.Clone(s.indexes())
	if ix.slot = slices.Index(list, nil); ix.slot < 0 {
		ix.slot = len(list)
		list = append(list, nil)
	}
	for i, st := range s.streams {
		st.store.AddIndex(ix.shard(i)) // from here on, other goroutines may build it
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

// indexes returns the source's indexes by slot; removed ones are nil.
func (s *Source) indexes() []*indexer {
	if list := s.indexers.Load(); list != nil {
		return *list
	}
	return nil
}

// build computes the missing values of one stream's index.
func (s *stream) build(ix *indexer, shard indexShard) {
	for {
		var todo []store.Item
		s.store.View(func(get func(store.Key) *compact.Version) {
			for _, k := range shard.pendingKeys(buildChunk) {
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

// indexed computes the values of a stored object; an undecodable one has no values.
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

// compute returns the values of an object; obj is nil if it cannot be decoded.
func (s *stream) compute(ix *indexer, k Key, obj Object) any {
	values, err := ix.compute(obj)
	if err != nil {
		s.hooks().indexError(s.id, k, err)
	}
	return values
}

// derive computes labels, index values and decoded objects of a change, with at most one decode per Go type.
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
			continue // undecodable, or of a first list, which would flood the set
		}
		s.source.keep(c.V, c2, d.objs[i], d.sizes[i], false)
	}
}

// decoding decodes one object for several users, nearly always as one Go type.
type decoding struct {
	stream *stream
	key    store.Key
	format wire.Format
	raw    []byte
	codecs []*codec
	objs   []Object // nil: undecodable
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
