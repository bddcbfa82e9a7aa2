package checkpoint

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// idleBuffer is the buffer kept for the next changes: there may be hundreds of streams.
const idleBuffer = 4 << 10

// writer appends transactions to a file. After an error the file must be abandoned.
type writer struct {
	f       file
	seal    seal
	buf     []byte // not written yet
	limit   int    // buf is written when it reaches this size
	size    int64  // of the file, including buf
	durable int64  // bytes known to survive a crash of the machine

	dicts  map[*compact.Dict]*dictRef // those that the objects need
	dictID uint64                     // the last one assigned
	// unseen holds the objects of a continued file that the consumer has not received yet; nil once it has
	// received the whole state.
	unseen map[store.Key]*compact.Version

	objects int   // in the file
	live    int64 // size of a file without garbage
	open    int   // records since the last commit
	last    store.Head
}

// dictRef is a dictionary in the file.
type dictRef struct {
	id      uint64
	size    int64 // of its record
	objects int   // number of objects that need it
}

// newWriter begins a file.
func newWriter(f file, limit int, h *header) (*writer, error) {
	id := make([]byte, idSize)
	rand.Read(id) // never fails
	w := &writer{f: f, limit: limit, seal: newSeal(id), buf: appendPreface(nil, id), dicts: map[*compact.Dict]*dictRef{}}
	w.size = int64(len(w.buf))
	err := w.record(func(to []byte) []byte { return h.append(to) })
	w.live, w.open = w.size, 0
	return w, err
}

// continued continues a loaded file that ends with its last commit.
func continued(f file, limit int, l *loader) *writer {
	w := &writer{
		f: f, limit: limit, seal: l.seal, size: l.end,
		dicts: make(map[*compact.Dict]*dictRef, len(l.dicts)), unseen: l.objects,
		live: l.first, last: l.last.head,
	}
	for id, d := range l.dicts {
		w.dicts[d.Dict] = &dictRef{id: id, size: d.size}
		w.dictID = max(w.dictID, id)
	}
	for k, v := range l.objects {
		w.hold(k, v)
	}
	for d, ref := range w.dicts {
		if ref.objects == 0 {
			delete(w.dicts, d)
		}
	}
	return w
}

// apply adds a batch's changes to the transaction.
func (w *writer) apply(b *store.Batch) error {
	for i := range b.Deltas {
		d := &b.Deltas[i]
		old := d.Old
		if had, ok := w.unseen[d.Key]; ok {
			delete(w.unseen, d.Key)
			old = had
		}
		if err := w.change(d.Key, old, d.New); err != nil {
			return err
		}
	}
	return nil
}

// change replaces old by v; nil means absent.
func (w *writer) change(k store.Key, old, v *compact.Version) error {
	if v == old {
		return nil
	}
	if v != nil {
		if err := w.put(k, v); err != nil {
			return err
		}
	} else if err := w.record(func(to []byte) []byte { return appendDelete(to, k) }); err != nil {
		return err
	}
	if old != nil {
		w.release(k, old)
	}
	return nil
}

func (w *writer) put(k store.Key, v *compact.Version) error {
	payload, d := v.Stored()
	var id uint64
	if d != nil {
		ref, err := w.dict(d)
		if err != nil {
			return err
		}
		id = ref.id
	}
	w.hold(k, v)
	return w.record(func(to []byte) []byte { return appendPut(to, k, v, payload, id) })
}

// dict returns a dictionary of the file, and adds it if necessary.
func (w *writer) dict(d *compact.Dict) (*dictRef, error) {
	if ref := w.dicts[d]; ref != nil {
		return ref, nil
	}
	w.dictID++
	ref := &dictRef{id: w.dictID}
	w.dicts[d] = ref
	at := w.size
	err := w.record(func(to []byte) []byte { return appendDict(to, ref.id, d.Bytes()) })
	ref.size = w.size - at
	return ref, err
}

// hold counts an object in.
func (w *writer) hold(k store.Key, v *compact.Version) { w.count(k, v, 1) }

// release counts out an object that left the file.
func (w *writer) release(k store.Key, v *compact.Version) { w.count(k, v, -1) }

// count counts a version in or out. The sizes are exact only if the queue's old version is the very version in
// the file; it may also be another one with the same content. That suffices for their use. The number of
// objects is exact.
func (w *writer) count(k store.Key, v *compact.Version, n int) {
	payload, d := v.Stored()
	var id uint64
	if ref := w.dicts[d]; ref != nil {
		id = ref.id
		if ref.objects == 0 {
			w.live += ref.size
		}
		ref.objects += n
		if ref.objects == 0 {
			w.live -= ref.size
			delete(w.dicts, d) // an object that needs it later adds it again
		}
	}
	w.live += int64(n) * putSize(k, v, payload, id)
	w.objects += n
}

// deleteUnseen deletes the objects that were missing when the whole state had been received.
func (w *writer) deleteUnseen() error {
	for k, v := range w.unseen {
		if err := w.change(k, v, nil); err != nil {
			return err
		}
	}
	w.unseen = nil
	return nil
}

// commit ends the transaction.
func (w *writer) commit(head store.Head) error {
	c := commit{head: head, objects: w.objects, durable: w.durable, at: head.At}
	head.At = time.Time{}
	err := w.record(func(to []byte) []byte { return c.append(to) })
	w.open, w.last = 0, head
	return err
}

// record adds a record to the transaction.
func (w *writer) record(body func([]byte) []byte) error {
	start := len(w.buf)
	w.buf = body(append(w.buf, make([]byte, recordHead)...))
	b := w.buf[start+recordHead:]
	if len(b) > maxRecord {
		return fmt.Errorf("write record: %d bytes exceed the limit", len(b))
	}
	binary.LittleEndian.PutUint32(w.buf[start:], uint32(len(b)))
	binary.LittleEndian.PutUint32(w.buf[start+4:], w.seal.crc(w.size, b))
	w.size += int64(recordHead + len(b))
	w.open++
	if len(w.buf) >= w.limit {
		return w.write()
	}
	return nil
}

// write hands the buffer to the file.
func (w *writer) write() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.f.Write(w.buf)
	if cap(w.buf) > 2*w.limit {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return err
}

// sync makes everything durable.
func (w *writer) sync() error {
	if w.durable == w.size {
		return nil
	}
	if err := w.write(); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	w.durable = w.size
	if cap(w.buf) > idleBuffer {
		w.buf = nil
	}
	return nil
}

// garbage returns the number of bytes that are no longer needed.
func (w *writer) garbage() int64 { return w.size - w.live }
