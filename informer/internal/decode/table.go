package decode

import (
	"hash/maphash"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
)

// Table holds the parts that the objects of a source share.
type Table struct {
	seeds  [2]maphash.Seed
	door   filter
	texts  texts
	shards [shards]shard
	stats  [512]use                       // by field.stat or, in JSON, a hash of the path; several fields may have the same
	limit  atomic.Int64                   // of a shard's generation, in bytes
	used   atomic.Bool                    // since the last Sweep
	empty  atomic.Pointer[map[string]any] // every {} in JSON
}

const shards = 8

// NewTable makes a table for parts of about limit bytes, estimated by their length on the wire. It begins small.
func NewTable(limit int64) *Table {
	t := &Table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	t.Limit(limit)
	t.texts.seed = t.seeds[0]
	t.empty.Store(&map[string]any{})
	return t
}

// Limit changes the limit. A table that is larger shrinks as it is used, or swept.
func (t *Table) Limit(limit int64) { t.limit.Store(max(limit/shards/2, 1<<10)) }

// partKey identifies a part, together with value.check.
type partKey struct {
	hash uint64 // of its bytes
	typ  uintptr
}

// value is a part: a pointer, a map or a slice.
type value struct {
	v     any
	check uint64 // another hash of its bytes
	lossy bool   // the bytes have unknown fields
	bytes int32  // estimated size, with the entry
}

// part is a part to add.
type part struct {
	key partKey
	v   value
}

// shard is a portion of a table, in two generations. A part that is found in the old one moves to the new one. When the new
// one is full, or swept, it becomes the old one, and the parts that are still in the old one are dropped.
type shard struct {
	mu       sync.Mutex
	now, old map[partKey]value
	size     int64 // of now, in bytes
	oldSize  int64
}

// entrySize is the size of an entry without its part.
const entrySize = 64

// growth is the ratio of a part's heap size to its size in protobuf.
const growth = 2

// mix is a factor that spreads the bits of a number over a hash.
const mix = 0x9E3779B97F4A7C15

func (t *Table) key(typ uintptr, raw []byte) partKey {
	return partKey{maphash.Bytes(t.seeds[0], raw), typ}
}

func (t *Table) check(raw []byte) uint64 { return maphash.Bytes(t.seeds[1], raw) }

func (t *Table) shard(k partKey) *shard { return &t.shards[k.hash%shards] }

// get returns the part with these bytes.
func (t *Table) get(k partKey, raw []byte) (value, bool) {
	v, ok := t.shard(k).get(k, t.limit.Load())
	return v, ok && v.check == t.check(raw)
}

func (s *shard) get(k partKey, limit int64) (v value, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok = s.now[k]; ok {
		return v, true
	}
	if v, ok = s.old[k]; ok {
		delete(s.old, k)
		s.oldSize -= int64(v.bytes)
		s.put(k, v, limit)
	}
	return v, ok
}

// cost is the size of an entry with its part.
func cost(size int64) int32 { return int32(min(entrySize+size, math.MaxInt32)) }

func (s *shard) put(k partKey, v value, limit int64) {
	if s.size >= limit {
		s.rotate()
	}
	if s.now == nil {
		s.now = map[partKey]value{}
	}
	s.size += int64(v.bytes) - int64(s.now[k].bytes)
	s.now[k] = v
}

func (s *shard) rotate() { s.now, s.old, s.size, s.oldSize = nil, s.now, 0, s.size }

func (t *Table) add(parts []part) {
	for _, p := range parts {
		s := t.shard(p.key)
		s.mu.Lock()
		s.put(p.key, p.v, t.limit.Load())
		s.mu.Unlock()
	}
}

// touch marks the table as used.
func (t *Table) touch() {
	if !t.used.Load() {
		t.used.Store(true)
	}
}

// Sweep drops the parts that were not used since the last Sweep, or since the table was last full. If nothing was decoded
// since, the table becomes as small as it began.
func (t *Table) Sweep() {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.rotate()
		s.mu.Unlock()
	}
	if !t.used.Swap(false) {
		t.door.slots.Store(nil)
		t.texts.slots.Store(nil)
	}
}

// Stats describe a table.
type Stats struct {
	Parts int
	Bytes int64 // of the parts and the table, estimated
}

// Stats describes the table at present.
func (t *Table) Stats() Stats {
	st := Stats{Bytes: sizeOf[Table]() + t.door.bytes() + t.texts.bytes()}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		st.Parts += len(s.now) + len(s.old)
		st.Bytes += s.size + s.oldSize
		s.mu.Unlock()
	}
	return st
}

// part takes a field's value from the table. If it is not there, fill decodes it into the field.
func (d *decoder) part(f *field, to reflect.Value, raw []byte, fill func() error) error {
	if d.t == nil || len(raw) == 0 || d.t.stat(f).resting() {
		return fill()
	}
	key := d.t.key(f.id, raw)
	if v, ok := d.t.get(key, raw); ok {
		d.t.stat(f).tried(true)
		to.Set(reflect.ValueOf(v.v))
		d.lossy = d.lossy || v.lossy
		return nil
	}
	if d.inPart { // rarely found alone
		return fill()
	}
	again := d.t.door.again(key.hash ^ uint64(f.id)*mix)
	d.t.stat(f).tried(again)
	if !again {
		return fill()
	}
	texts, marks, lossy := len(d.text), len(d.marks), d.lossy
	d.lossy, d.inPart = false, true
	if err := fill(); err != nil {
		return err
	}
	d.inPart = false
	d.strings(marks, texts) // the part may outlive the object, and must not keep its strings
	d.parts = append(d.parts, part{key, value{to.Interface(), d.t.check(raw), d.lossy, cost(growth * int64(len(raw)))}})
	d.lossy = d.lossy || lossy
	return nil
}

func (t *Table) stat(f *field) *use { return &t.stats[f.stat%len(t.stats)] }

// use decides whether looking up a field's values pays. If fewer than one in twenty was seen before, the field rests.
type use struct {
	tries, hits atomic.Uint32
	rest        atomic.Int32
}

const (
	trial = 256        // number of values before each decision
	worth = trial / 20 // the least hits that are worth it
	pause = 2048       // number of values not looked up afterwards
)

func (u *use) resting() bool { return u.rest.Load() > 0 && u.rest.Add(-1) >= 0 }

func (u *use) tried(hit bool) {
	if hit {
		u.hits.Add(1)
	}
	if u.tries.Add(1) >= trial {
		u.tries.Store(0)
		if u.hits.Swap(0) < worth {
			u.rest.Store(pause)
		}
	}
}

// filter remembers, roughly, which hashes were seen. It begins small and grows with use.
type filter struct {
	slots atomic.Pointer[[]atomic.Uint32]
	asked atomic.Int64
}

const (
	fewSlots  = 1 << 8  // of a filter or a cache at first
	mostSlots = 1 << 16 // of a filter
)

// ways is the number of slots for a hash. With one, two alternating hashes with the same slot would never be found.
const ways = 4

// again reports whether the hash was seen before, and remembers it.
func (d *filter) again(hash uint64) bool {
	slots := grown(&d.slots, &d.asked, mostSlots)
	first := hash % uint64(len(slots)/ways) * ways
	set := slots[first : first+ways]
	tag := uint32(hash>>32) | 1
	for i := range set {
		if set[i].Load() == tag {
			return true
		}
	}
	n := d.asked.Add(1)
	for i := range set {
		if set[i].CompareAndSwap(0, tag) {
			return false
		}
	}
	set[n%ways].Store(tag)
	return false
}

func (d *filter) bytes() int64 {
	if s := d.slots.Load(); s != nil {
		return int64(len(*s)) * sizeOf[atomic.Uint32]()
	}
	return 0
}

// grown returns the slots of a cache. Their number quadruples after as many misses as there are slots.
func grown[T any](at *atomic.Pointer[[]T], asked *atomic.Int64, most int) []T {
	now := at.Load()
	switch {
	case now == nil:
		asked.Store(0)
	case len(*now) >= most || asked.Load() <= int64(len(*now)):
		return *now
	}
	more := make([]T, fewSlots)
	if now != nil {
		more = make([]T, 4*len(*now))
	}
	if at.CompareAndSwap(now, &more) {
		asked.Store(0)
	}
	return more // unused, if another goroutine was faster
}
