package decode

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// errUnusual means that the generated code must decode the bytes.
var errUnusual = errors.New("not as the API server writes it")

// maxDepth bounds recursion: types may contain themselves.
const maxDepth = 100

// Decode fills obj, which must point to a zero value of the plan's type. With a table, obj shares parts with others
// and is read-only. With nil it is the caller's.
//
// Ok is false if the API server would not write such bytes. Obj is then half filled; decode the bytes into a new object with
// the generated Unmarshal, which knows what they mean.
//
// Decode does not keep raw.
func (p *Plan) Decode(t *Table, raw []byte, obj any) (r Result, ok bool) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != p.root.typ {
		return Result{}, false
	}
	d := newDecoder(t, p)
	defer d.free()
	if err := d.message(p.root, v.Elem(), raw, 0); err != nil {
		return Result{}, false
	}
	return d.done(), true
}

// Result describes a decoded object.
type Result struct {
	// Size estimates the object's heap in bytes, without the parts that it shares.
	Size int64
	// Lossy: the bytes have fields that the type lacks, such as those of a newer API server.
	Lossy bool
}

// decoder decodes one object. It collects the unshared strings and allocates all of them at once when the object is
// complete. The strings of a part that enters the table have their own allocation.
type decoder struct {
	t      *Table
	size   int64  // as Result.Size
	lossy  bool   // the object, or the current part, has unknown fields
	inPart bool   // the current part will enter the table
	parts  []part // to add to the table
	text   []byte // of marks
	marks  []mark
}

// mark is a string still to be set.
type mark struct {
	at         reflect.Value
	begin, end int // in decoder.text
}

var decoders = sync.Pool{New: func() any { return &decoder{} }}

func newDecoder(t *Table, p *Plan) *decoder {
	d := decoders.Get().(*decoder)
	d.t, d.size = t, int64(p.root.typ.Size())
	return d
}

func (d *decoder) free() {
	const keep = 1 << 20
	clear(d.parts)
	clear(d.marks)
	*d = decoder{parts: d.parts[:0], text: d.text[:0], marks: d.marks[:0]}
	if cap(d.text) <= keep {
		decoders.Put(d)
	}
}

// done completes the object, and adds its parts to the table.
func (d *decoder) done() Result {
	d.strings(0, 0)
	if d.t != nil {
		d.t.add(d.parts)
		d.t.touch()
	}
	return Result{Size: d.size, Lossy: d.lossy}
}

// strings sets the strings from this mark and this text position on.
func (d *decoder) strings(marks, text int) {
	if len(d.marks) == marks {
		return
	}
	all := string(d.text[text:])
	d.size += int64(len(all))
	for _, m := range d.marks[marks:] {
		m.at.SetString(all[m.begin-text : m.end-text])
	}
	clear(d.marks[marks:])
	d.marks, d.text = d.marks[:marks], d.text[:text]
}

// str sets a string, now or in strings.
func (d *decoder) str(at reflect.Value, b []byte) {
	if len(b) == 0 {
		return
	}
	if d.t != nil {
		if s, ok := d.t.text(b); ok {
			at.SetString(s)
			return
		}
	}
	begin := len(d.text)
	d.text = append(d.text, b...)
	d.marks = append(d.marks, mark{at: at, begin: begin, end: len(d.text)})
}

// message decodes a message into a struct.
func (d *decoder) message(m *message, v reflect.Value, raw []byte, depth int) error {
	if m.own {
		return unmarshal(v, raw, d.t != nil)
	}
	if depth > maxDepth {
		return errUnusual
	}
	for at, last := 0, 0; at < len(raw); {
		tag, n := uvarint(raw[at:])
		number := int(tag >> 3 & math.MaxInt32)
		if n <= 0 || number <= last || tag>>3 > math.MaxInt32 {
			return errUnusual
		}
		last = number
		if number >= len(m.fields) || m.fields[number] == nil {
			size := skip(raw[at+n:], tag)
			if size <= 0 {
				return errUnusual
			}
			d.lossy = true
			last, at = number-1, at+n+size // the same number may follow: the field may be repeated
			continue
		}
		f := m.fields[number]
		if tag != f.tag {
			return errUnusual
		}
		to := v.Field(f.index)
		if f.repeated() {
			run, count, ok := f.run(raw[at:], n)
			if !ok {
				return errUnusual
			}
			if err := d.repeat(f, to, raw[at:at+run], n, count, depth); err != nil {
				return err
			}
			at += run
			continue
		}
		at += n
		switch f.kind.wire() {
		case varint:
			x, n := uvarint(raw[at:])
			if n <= 0 {
				return errUnusual
			}
			at += n
			f.setVarint(to, x)
		case fixed64:
			if len(raw)-at < 8 {
				return errUnusual
			}
			f.pointed(to).SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(raw[at:])))
			at += 8
		default:
			b, n := bytesOf(raw[at:])
			if n <= 0 {
				return errUnusual
			}
			at += n
			if err := d.value(f, to, b, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// value decodes a field that has a length and is not repeated.
func (d *decoder) value(f *field, to reflect.Value, b []byte, depth int) error {
	switch f.kind {
	case kindString:
		d.str(f.pointed(to), b)
		return nil
	case kindMessage:
		return d.message(f.elem, to, b, depth+1)
	case kindPtrMessage:
		return d.part(f, to, b, func() error {
			d.size += int64(f.elem.typ.Size())
			return d.message(f.elem, f.pointed(to), b, depth+1)
		})
	default: // kindBytes
		return d.part(f, to, b, func() error {
			d.size += int64(len(b))
			to.SetBytes(clone(b))
			return nil
		})
	}
}

// clone copies bytes. The copy has no room to append, and is not nil.
func clone(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// pointed returns the value to set: the field itself or, if it is a pointer, a new value that it points to from now on.
func (f *field) pointed(to reflect.Value) reflect.Value {
	if to.Kind() != reflect.Pointer {
		return to
	}
	p := reflect.New(f.typ.Elem())
	to.Set(p)
	return p.Elem()
}

// setVarint sets a bool, an int32 or an int64, or a pointer to one.
func (f *field) setVarint(to reflect.Value, x uint64) {
	switch to = f.pointed(to); to.Kind() {
	case reflect.Bool:
		to.SetBool(x != 0)
	case reflect.Int32:
		to.SetInt(int64(int32(x))) //nolint:gosec // as the generated code does
	default:
		to.SetInt(int64(x)) //nolint:gosec // as the generated code does
	}
}

// repeat decodes all elements of a repeated field. Run has count of them, each behind a tag of tagLen bytes.
func (d *decoder) repeat(f *field, to reflect.Value, run []byte, tagLen, count, depth int) error {
	return d.part(f, to, run, func() error {
		if f.kind == kindTextMap || f.kind == kindMap {
			d.size += mapSize(count, len(run))
			if f.kind == kindTextMap {
				return d.textMap(to, run, tagLen, count)
			}
			return d.anyMap(f, to, run, tagLen, count, depth)
		}
		to.Grow(count) // one allocation; reflect.MakeSlice needs two
		to.SetLen(count)
		to.SetCap(count)
		if f.kind != kindVarints {
			d.size += int64(count) * int64(f.typ.Elem().Size())
		}
		for i := range count {
			run = run[tagLen:]
			if f.kind == kindVarints {
				x, n := uvarint(run)
				run = run[n:]
				f.setVarint(to.Index(i), x)
				continue
			}
			b, n := bytesOf(run)
			run = run[n:]
			if f.kind == kindStrings {
				d.str(to.Index(i), b)
			} else if err := d.message(f.elem, to.Index(i), b, depth+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// mapSize estimates the heap of a map whose entries have so many bytes in protobuf.
func mapSize(entries, bytes int) int64 { return 48 + 48*int64(entries) + int64(bytes) }

// entry splits a map's entry, which has a key and then a value. Value is nil if it is missing.
func entry(b []byte) (key, value []byte, ok bool) {
	const keyTag, valueTag = 1<<3 | length, 2<<3 | length
	if len(b) == 0 || b[0] != keyTag {
		return nil, nil, false
	}
	key, n := bytesOf(b[1:])
	if n <= 0 {
		return nil, nil, false
	}
	if b = b[1+n:]; len(b) == 0 {
		return key, nil, true
	}
	if b[0] != valueTag {
		return nil, nil, false
	}
	value, n = bytesOf(b[1:])
	return key, value, n > 0 && 1+n == len(b)
}

// mapText makes the strings of a map. They have no address, so they cannot be set later: uncached ones are cut out of
// one string that contains all bytes of the map.
type mapText struct {
	t   *Table
	run []byte
	all string
}

// text returns a string of bytes that are part of the run, as a slice with the same end of its capacity.
func (m *mapText) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if m.t != nil {
		if s, ok := m.t.text(b); ok {
			return s
		}
	}
	if m.all == "" {
		m.all = string(m.run)
	}
	begin := cap(m.run) - cap(b)
	return m.all[begin : begin+len(b)]
}

// textMap decodes a map[string]string.
func (d *decoder) textMap(to reflect.Value, run []byte, tagLen, count int) error {
	m, text := make(map[string]string, count), mapText{t: d.t, run: run}
	for len(run) > 0 {
		b, n := bytesOf(run[tagLen:])
		run = run[tagLen+n:]
		k, v, ok := entry(b)
		if !ok || v == nil {
			return errUnusual
		}
		m[text.text(k)] = text.text(v)
	}
	to.Set(reflect.ValueOf(m))
	return nil
}

// anyMap decodes any other map: of messages, strings or bytes.
func (d *decoder) anyMap(f *field, to reflect.Value, run []byte, tagLen, count, depth int) error {
	m, text := reflect.MakeMapWithSize(f.typ, count), mapText{t: d.t, run: run}
	key, value := reflect.New(f.typ.Key()).Elem(), reflect.New(f.typ.Elem()).Elem()
	for len(run) > 0 {
		b, n := bytesOf(run[tagLen:])
		run = run[tagLen+n:]
		k, v, ok := entry(b)
		if !ok || v == nil && !isBytes(f.typ.Elem()) { // empty bytes are not written
			return errUnusual
		}
		key.SetString(text.text(k))
		value.SetZero()
		switch {
		case f.elem != nil:
			if err := d.mapped(f.elem, value, v, depth+1); err != nil {
				return err
			}
		case isText(f.typ.Elem()):
			value.SetString(text.text(v))
		default:
			value.SetBytes(clone(v))
		}
		m.SetMapIndex(key, value)
	}
	to.Set(m)
	return nil
}

// mapped decodes a message that is then copied into a map.
func (d *decoder) mapped(m *message, v reflect.Value, raw []byte, depth int) error {
	if m.own {
		return unmarshal(v, raw, false) // readers of a map get a copy, so String may write to it
	}
	texts, marks := len(d.text), len(d.marks)
	if err := d.message(m, v, raw, depth); err != nil {
		return err
	}
	d.strings(marks, texts)
	return nil
}

// unmarshal decodes a type with its own Unmarshal.
func unmarshal(v reflect.Value, raw []byte, shared bool) error {
	u, ok := v.Addr().Interface().(unmarshaler)
	if !ok {
		return errUnusual
	}
	list := v.Kind() == reflect.Slice
	if list {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // as the generated code does
	}
	if err := u.Unmarshal(raw); err != nil {
		return errUnusual
	}
	if list {
		v.SetCap(v.Len()) // an append must not write into shared memory
	}
	if q, ok := u.(*resource.Quantity); ok && shared {
		_ = q.String() // writes the text into the quantity: a race if several readers of a shared one did it
	}
	return nil
}

// run finds the elements of a repeated field, which follow each other, and checks that each is whole.
func (f *field) run(raw []byte, tagLen int) (n, count int, ok bool) {
	for tag := raw[:tagLen]; len(raw)-n >= tagLen && string(raw[n:n+tagLen]) == string(tag); count++ {
		n += tagLen
		var size int
		if f.kind == kindVarints {
			_, size = uvarint(raw[n:])
		} else {
			_, size = bytesOf(raw[n:])
		}
		if size <= 0 {
			return 0, 0, false
		}
		n += size
	}
	return n, count, true
}

// skip returns the length of an unknown field's value, or 0 or less if it cannot be determined.
func skip(b []byte, tag uint64) int {
	switch tag & 7 {
	case varint:
		_, n := uvarint(b)
		return n
	case fixed64:
		return fits(b, 8)
	case fixed32:
		return fits(b, 4)
	case length:
		_, n := bytesOf(b)
		return n
	}
	return 0
}

func fits(b []byte, n int) int {
	if len(b) < n {
		return 0
	}
	return n
}

// uvarint is binary.Uvarint, and faster for a single byte.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

// bytesOf reads a length and that many bytes. N is the length of both, 0 or less if there are too few.
func bytesOf(b []byte) (value []byte, n int) {
	size, n := uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, 0
	}
	return b[n : n+int(size)], n + int(size) //nolint:gosec // it is at most len(b)
}
