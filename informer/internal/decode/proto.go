package decode

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// errUnusual says that the generated code has to decide.
var errUnusual = errors.New("not as the API server writes it")

// maxDepth bounds recursion: types may contain themselves.
const maxDepth = 100

// Decode fills obj, which must be a pointer to a zero value of the plan's type. With a table, obj shares parts with other
// objects, and nobody may change it; with nil it is the caller's.
//
// Ok is false where the bytes are not as the API server writes them; obj is then half filled, and the generated Unmarshal
// decides on a new one what they mean, if anything.
//
// Raw is not kept.
func (p *Plan) Decode(t *Table, raw []byte, obj any) (r Result, ok bool) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != p.root.typ {
		return Result{}, false
	}
	d := decoders.Get().(*decoder)
	defer d.free()
	d.t, d.size = t, int64(p.root.typ.Size())
	if err := d.message(p.root, v.Elem(), raw, 0); err != nil {
		return Result{}, false
	}
	return d.done(), true
}

// done makes the strings of the object, which is complete, and adds its parts to the table.
func (d *decoder) done() Result {
	d.strings(0, 0)
	if t := d.t; t != nil {
		if len(d.parts) > 0 {
			t.add(d.parts)
		}
		t.touch()
	}
	return Result{Size: d.size, Lossy: d.lossy}
}

// Result describes what was decoded.
type Result struct {
	// Size is about what the object costs on the heap, in bytes, without what it shares.
	Size int64
	// Lossy says that the bytes hold fields that the type does not have, as those of a newer API server do.
	Lossy bool
}

// decoder decodes one object. Strings that are not shared are collected, and get one allocation for all of them when the
// object, or the shared part that they are in, is complete.
type decoder struct {
	t      *Table
	size   int64  // as Result.Size
	lossy  bool   // what was decoded since the part began has fields that are not known
	parts  []part // to be added to the table
	inPart bool
	near   keyCache
	text   []byte
	marks  []mark
}

// mark is a string whose text is collected.
type mark struct {
	at         reflect.Value
	begin, end int // of its text
}

var decoders = sync.Pool{New: func() any { return &decoder{} }}

func (d *decoder) free() {
	const keep = 1 << 20
	clear(d.parts)
	clear(d.marks)
	d.t, d.size, d.lossy, d.inPart, d.parts, d.text, d.marks = nil, 0, false, false, d.parts[:0], d.text[:0], d.marks[:0]
	if cap(d.text) <= keep {
		decoders.Put(d)
	}
}

// strings makes the strings that were collected since.
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

// str sets a string.
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
			last, at = number-1, at+n+size // it may be repeated
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
		switch f.wire {
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

// value decodes a field that is not repeated and has a length.
func (d *decoder) value(f *field, to reflect.Value, b []byte, depth int) error {
	switch f.kind {
	case kindString, kindPtrString:
		d.str(f.pointed(to), b)
	case kindMessage:
		return d.message(f.elem, to, b, depth+1)
	case kindPtrMessage:
		return d.part(f, to, b, func() error {
			d.size += int64(f.elem.typ.Size())
			return d.message(f.elem, f.pointed(to), b, depth+1)
		})
	case kindBytes:
		return d.part(f, to, b, func() error {
			d.size += int64(len(b))
			to.SetBytes(append(make([]byte, 0, len(b)), b...))
			return nil
		})
	default:
		return errUnusual
	}
	return nil
}

// pointed returns the value to set: the field itself, or a new one that the field points to from now on.
func (f *field) pointed(to reflect.Value) reflect.Value {
	if to.Kind() != reflect.Pointer {
		return to
	}
	p := reflect.New(f.typ.Elem())
	to.Set(p)
	return p.Elem()
}

// repeat decodes all elements of a repeated field, whose tags have tagLen bytes.
func (d *decoder) repeat(f *field, to reflect.Value, run []byte, tagLen, count, depth int) error {
	return d.part(f, to, run, func() error {
		switch f.kind {
		case kindStringMap:
			d.size += mapSize(count, len(run))
			return d.stringMap(f, to, run, tagLen, count)
		case kindMap:
			d.size += mapSize(count, len(run))
			return d.anyMap(f, to, run, tagLen, count, depth)
		case kindMessages, kindStrings:
			d.size += int64(count) * int64(f.typ.Elem().Size())
		}
		to.Grow(count) // one allocation; reflect.MakeSlice needs two
		to.SetLen(count)
		to.SetCap(count)
		for i := range count {
			if f.wire == varint {
				x, n := uvarint(run[tagLen:])
				f.setVarint(to.Index(i), x)
				run = run[tagLen+n:]
				continue
			}
			b, n := bytesOf(run[tagLen:])
			run = run[tagLen+n:]
			if f.kind == kindStrings {
				d.str(to.Index(i), b)
			} else if err := d.message(f.elem, to.Index(i), b, depth+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// mapSize is about what a map costs, of so many entries that have so many bytes.
func mapSize(entries, bytes int) int64 { return 48 + 48*int64(entries) + int64(bytes) }

// entry splits an entry of a map, which has a key and then a value; without a value, that is nil.
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

// mapText cuts the strings of a map, which have no address that could be filled in later, out of one string for all of
// them, unless they are cached.
type mapText struct {
	t   *Table
	run []byte
	all string
}

// text is the string of bytes that are a part of the run, with the same end of their capacity.
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

var textMapType = reflect.TypeFor[map[string]string]()

func (d *decoder) stringMap(f *field, to reflect.Value, run []byte, tagLen, count int) error {
	if f.typ != textMapType {
		return d.anyMap(f, to, run, tagLen, count, 0)
	}
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

// anyMap decodes a map of other values: messages or bytes.
func (d *decoder) anyMap(f *field, to reflect.Value, run []byte, tagLen, count, depth int) error {
	m, text := reflect.MakeMapWithSize(f.typ, count), mapText{t: d.t, run: run}
	key, value := reflect.New(f.typ.Key()).Elem(), reflect.New(f.typ.Elem()).Elem()
	for len(run) > 0 {
		b, n := bytesOf(run[tagLen:])
		run = run[tagLen+n:]
		k, v, ok := entry(b)
		if !ok || v == nil && f.kind == kindStringMap || v == nil && f.elem != nil { // bytes that are empty have no value
			return errUnusual
		}
		key.SetString(text.text(k))
		value.SetZero()
		switch {
		case f.kind == kindStringMap:
			value.SetString(text.text(v))
		case f.elem == nil:
			value.SetBytes(append(make([]byte, 0, len(v)), v...))
		default:
			texts, marks := len(d.text), len(d.marks)
			var err error
			if f.elem.own { // nobody has the address of a value in a map: its text need not be made for readers
				err = unmarshal(value, v, false)
			} else {
				err = d.message(f.elem, value, v, depth+1)
			}
			if err != nil {
				return err
			}
			d.strings(marks, texts) // the value is copied into the map
		}
		m.SetMapIndex(key, value)
	}
	to.Set(m)
	return nil
}

// unmarshal decodes a type that does that itself.
func unmarshal(v reflect.Value, raw []byte, shared bool) error {
	u, ok := v.Addr().Interface().(unmarshaler)
	if !ok {
		return errUnusual
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // as the generated code does
	}
	if err := u.Unmarshal(raw); err != nil {
		return errUnusual
	}
	if v.Kind() == reflect.Slice {
		v.SetCap(v.Len()) // who appends to what is shared must not write into it
	}
	if q, ok := u.(*resource.Quantity); ok && shared {
		_ = q.String() // keeps the text in the value, which would be a race if readers did it
	}
	return nil
}

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

// run finds the elements of a repeated field that follow each other, and checks that each is whole.
func (f *field) run(raw []byte, tagLen int) (n, count int, ok bool) {
	for tag := raw[:tagLen]; len(raw)-n >= tagLen && string(raw[n:n+tagLen]) == string(tag); count++ {
		n += tagLen
		var size int
		if f.wire == varint {
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

// skip returns how many bytes the value of a field has that no Go field is for; 0 if that cannot be said.
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

// uvarint is binary.Uvarint, quick for what is short.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

// bytesOf reads a length and that many bytes; n is how many it took, 0 or less if there are too few.
func bytesOf(b []byte) (value []byte, n int) {
	size, n := uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, 0
	}
	return b[n : n+int(size)], n + int(size) //nolint:gosec // it is at most len(b)
}
