package decode

import (
	"hash/maphash"
	"reflect"
	"sync/atomic"
)

// texts is a cache of short strings. Each slot holds the last string that came to it twice in a row.
type texts struct {
	seed  maphash.Seed
	slots atomic.Pointer[[]textSlot]
	asked atomic.Int64
}

type textSlot struct {
	hash   atomic.Uint32 // a part of the text's; most misses need not load the text
	missed atomic.Uint32 // the same part, of the last miss
	text   atomic.Pointer[cachedText]
}

// cachedText is a string that objects share.
type cachedText struct {
	text  string
	boxed any // the text in an interface, which saves an allocation per use; or nil
}

const (
	longText  = 128     // longer strings are not cached
	mostTexts = 1 << 12 // slots: few enough to stay in the processor's cache
)

// text returns the string of these bytes if it is cached.
func (t *Table) text(b []byte) (string, bool) {
	if c := t.cached(b, false); c != nil {
		return c.text, true
	}
	return "", false
}

// cached returns the cached string of these bytes, or nil. If it enters the cache now, box has it boxed as well.
func (t *Table) cached(b []byte, box bool) *cachedText {
	if len(b) > longText {
		return nil
	}
	hash := maphash.Bytes(t.texts.seed, b)
	slots := grown(&t.texts.slots, &t.texts.asked, mostTexts)
	slot := &slots[hash%uint64(len(slots))]
	tag := uint32(hash >> 32)
	if slot.hash.Load() == tag {
		if c := slot.text.Load(); c != nil && c.text == string(b) {
			return c
		}
	}
	if slot.missed.Load() != tag {
		t.texts.asked.Add(1)
		slot.missed.Store(tag)
		return nil
	}
	c := &cachedText{text: string(b)}
	if box {
		c.boxed = c.text
	}
	slot.text.Store(c)
	slot.hash.Store(tag)
	return c
}

func (t *texts) bytes() int64 {
	slots := t.slots.Load()
	if slots == nil {
		return 0
	}
	n := int64(len(*slots)) * sizeOf[textSlot]()
	for i := range *slots {
		if c := (*slots)[i].text.Load(); c != nil {
			n += sizeOf[cachedText]() + int64(len(c.text))
			if c.boxed != nil {
				n += sizeOf[string]()
			}
		}
	}
	return n
}

func sizeOf[T any]() int64 { return int64(reflect.TypeFor[T]().Size()) }
