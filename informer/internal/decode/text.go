package decode

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"
)

// texts is a cache of short strings, of which each slot holds the last one that was seen twice in a row.
type texts struct {
	seed  maphash.Seed
	slots atomic.Pointer[[]textSlot]
	asked atomic.Int64
}

type textSlot struct {
	missed atomic.Uint32 // part of the hash of the last one that was not found
	text   atomic.Pointer[string]
}

// longText is the length from which strings are not cached.
const longText = 128

// text returns the string with these bytes, if it is cached.
func (t *Table) text(b []byte) (string, bool) {
	if len(b) > longText {
		return "", false
	}
	hash := maphash.Bytes(t.texts.seed, b)
	slots := grown(&t.texts.slots, &t.texts.asked)
	slot := &slots[hash%uint64(len(slots))]
	if s := slot.text.Load(); s != nil && *s == string(b) {
		return *s, true
	}
	tag := uint32(hash >> 32)
	if slot.missed.Load() != tag {
		t.texts.asked.Add(1)
		slot.missed.Store(tag)
		return "", false
	}
	s := string(b)
	slot.text.Store(&s)
	return s, true
}

func (t *texts) bytes() int64 {
	slots := t.slots.Load()
	if slots == nil {
		return 0
	}
	n := int64(len(*slots)) * int64(unsafe.Sizeof(textSlot{}))
	for i := range *slots {
		if s := (*slots)[i].text.Load(); s != nil {
			n += int64(unsafe.Sizeof(*s)) + int64(len(*s))
		}
	}
	return n
}
