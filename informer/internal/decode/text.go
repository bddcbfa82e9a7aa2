package decode

import (
	"hash/maphash"
	"reflect"
	"strings"
	"sync/atomic"
)

// texts is a cache of short strings. Each slot holds the last string that missed it twice in a row.
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

// cached returns the cached string of these bytes, or nil. If the string enters the cache now and box is set, it is
// boxed as well.
func (t *Table) cached(b []byte, box bool) *cachedText {
	if len(b) > longText {
		return nil
	}
	slot, tag := t.texts.slot(maphash.Bytes(t.texts.seed, b))
	if c := slot.get(tag); c != nil && c.text == string(b) {
		return c
	}
	if !slot.again(tag) {
		t.texts.asked.Add(1)
		return nil
	}
	return slot.put(tag, string(b), box)
}

// cachedText is cached for a string. A string that enters the cache is copied, since it may be part of a longer one.
func (t *Table) cachedText(s string) *cachedText {
	if len(s) > longText {
		return nil
	}
	slot, tag := t.texts.slot(maphash.String(t.texts.seed, s))
	if c := slot.get(tag); c != nil && c.text == s {
		return c
	}
	if !slot.again(tag) {
		t.texts.asked.Add(1)
		return nil
	}
	return slot.put(tag, strings.Clone(s), false)
}

// slot returns the slot of a hash, and the hash's tag in it.
func (t *texts) slot(hash uint64) (*textSlot, uint32) {
	slots := grown(&t.slots, &t.asked, mostTexts)
	return &slots[hash%uint64(len(slots))], uint32(hash >> 32)
}

// get returns the text with this tag, or nil.
func (s *textSlot) get(tag uint32) *cachedText {
	if s.hash.Load() != tag {
		return nil
	}
	return s.text.Load()
}

// again reports whether the last miss had this tag, and notes this one.
func (s *textSlot) again(tag uint32) bool {
	if s.missed.Load() == tag {
		return true
	}
	s.missed.Store(tag)
	return false
}

func (s *textSlot) put(tag uint32, text string, box bool) *cachedText {
	c := &cachedText{text: text}
	if box {
		c.boxed = c.text
	}
	s.text.Store(c)
	s.hash.Store(tag)
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
