package decode

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"sync"
	"unsafe"

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
	if err := d.message(p.root, v.UnsafePointer(), raw, 0); err != nil {
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
	t     *Table
	size  int64  // as Result.Size
	lossy bool   // what was decoded since the part began has fields that are not known
	parts []part // to be added to the table
	text  []byte
	marks []mark
}

// mark is a string whose text is collected.
type mark struct {
	at         *string
	begin, end int // of its text
}

var decoders = sync.Pool{New: func() any { return &decoder{} }}

func (d *decoder) free() {
	const keep = 1 << 20
	clear(d.parts)
	clear(d.marks)
	d.t, d.size, d.lossy, d.parts, d.text, d.marks = nil, 0, false, d.parts[:0], d.text[:0], d.marks[:0]
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
		*m.at = all[m.begin-text : m.end-text]
	}
	clear(d.marks[marks:])
	d.marks, d.text = d.marks[:marks], d.text[:text]
}

// str sets a string.
func (d *decoder) str(at *string, b []byte) {
	if len(b) == 0 {
		return
	}
	if d.t != nil {
		if s, ok := d.t.text(b); ok {
			*at = s
			return
		}
	}
	begin := len(d.text)
	d.text = append(d.text, b...)
	d.marks = append(d.marks, mark{at: at, begin: begin, end: len(d.text)})
}

// message decodes a message into the struct at p.
func (d *decoder) message(m *message, p unsafe.Pointer, raw []byte, depth int) error {
	if m.own {
		return unmarshal(m.typ, p, raw, d.t != nil)
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
		if f.repeated() {
			run, count, ok := f.run(raw[at:], n)
			if !ok {
				return errUnusual
			}
			if err := d.repeat(f, unsafe.Add(p, f.offset), raw[at:at+run], n, count, depth); err != nil {
				return err
			}
			at += run
			continue
		}
		at += n
		switch f.wire {
		case varint:
			v, n := uvarint(raw[at:])
			if n <= 0 {
				return errUnusual
			}
			at += n
			f.setVarint(unsafe.Add(p, f.offset), v)
		case fixed64:
			if len(raw)-at < 8 {
				return errUnusual
			}
			f.setFloat(unsafe.Add(p, f.offset), math.Float64frombits(binary.LittleEndian.Uint64(raw[at:])))
			at += 8
		default:
			b, n := bytesOf(raw[at:])
			if n <= 0 {
				return errUnusual
			}
			at += n
			if err := d.value(f, unsafe.Add(p, f.offset), b, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// value decodes a field that is not repeated and has a length.
func (d *decoder) value(f *field, p unsafe.Pointer, b []byte, depth int) error {
	switch f.kind {
	case kindString:
		d.str((*string)(p), b)
	case kindPtrString:
		s := new(string)
		*(**string)(p) = s
		d.str(s, b)
	case kindMessage:
		return d.message(f.elem, p, b, depth+1)
	case kindPtrMessage:
		return d.part(f, p, b, func(at unsafe.Pointer) error {
			v := reflect.New(f.elem.typ).UnsafePointer()
			*(*unsafe.Pointer)(at) = v
			d.size += int64(f.elem.typ.Size())
			return d.message(f.elem, v, b, depth+1)
		})
	case kindBytes:
		return d.part(f, p, b, func(at unsafe.Pointer) error {
			*(*[]byte)(at) = append(make([]byte, 0, len(b)), b...)
			d.size += int64(len(b))
			return nil
		})
	default:
		return errUnusual
	}
	return nil
}

// repeat decodes all elements of a repeated field, whose tags have tagLen bytes.
func (d *decoder) repeat(f *field, p unsafe.Pointer, run []byte, tagLen, count, depth int) error {
	return d.part(f, p, run, func(at unsafe.Pointer) error {
		switch f.kind {
		case kindMessages:
			// The address of a slice's array does not change: it has its length from the start.
			array := f.array(count)
			*(*sliceHeader)(at) = sliceHeader{array, count, count}
			d.size += int64(count) * int64(f.elem.typ.Size())
			for size := f.elem.typ.Size(); len(run) > 0; array = unsafe.Add(array, size) {
				b, n := bytesOf(run[tagLen:])
				if err := d.message(f.elem, array, b, depth+1); err != nil {
					return err
				}
				if run = run[tagLen+n:]; len(run) == 0 {
					break
				}
			}
		case kindStrings:
			all := make([]string, count)
			d.size += int64(count) * int64(unsafe.Sizeof(""))
			*(*[]string)(at) = all
			for i := range all {
				b, n := bytesOf(run[tagLen:])
				run = run[tagLen+n:]
				d.str(&all[i], b)
			}
		case kindInt32s:
			*(*[]int32)(at) = varints[int32](run, tagLen, count)
		case kindInt64s:
			*(*[]int64)(at) = varints[int64](run, tagLen, count)
		case kindBools:
			all := make([]bool, count)
			for i := range all {
				v, n := uvarint(run[tagLen:])
				all[i], run = v != 0, run[tagLen+n:]
			}
			*(*[]bool)(at) = all
		case kindStringMap:
			d.size += mapSize(count, len(run))
			return d.stringMap((*map[string]string)(at), run, tagLen, count)
		case kindMap:
			d.size += mapSize(count, len(run))
			return d.anyMap(f, at, run, tagLen, count, depth)
		default:
			return errUnusual
		}
		return nil
	})
}

// mapSize is about what a map costs, of so many entries that have so many bytes.
func mapSize(entries, bytes int) int64 { return 48 + 48*int64(entries) + int64(bytes) }

// array makes the array of a slice.
func (f *field) array(n int) unsafe.Pointer {
	if n >= len(f.arrays) {
		return reflect.MakeSlice(f.typ, n, n).UnsafePointer()
	}
	t := f.arrays[n].Load()
	if t == nil { // of a type, New makes an array in one allocation; MakeSlice needs two
		of := reflect.ArrayOf(n, f.typ.Elem())
		t = &of
		f.arrays[n].Store(t)
	}
	return reflect.New(*t).UnsafePointer()
}

// sliceHeader is a slice as the runtime has it.
type sliceHeader struct {
	array    unsafe.Pointer
	len, cap int
}

func varints[T int32 | int64](run []byte, tagLen, count int) []T {
	all := make([]T, count)
	for i := range all {
		v, n := uvarint(run[tagLen:])
		all[i], run = T(v), run[tagLen+n:] //nolint:gosec // as the generated code does
	}
	return all
}

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

func (d *decoder) stringMap(at *map[string]string, run []byte, tagLen, count int) error {
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
	*at = m
	return nil
}

// anyMap decodes a map of other values: messages or bytes.
func (d *decoder) anyMap(f *field, at unsafe.Pointer, run []byte, tagLen, count, depth int) error {
	m, text := reflect.MakeMapWithSize(f.typ, count), mapText{t: d.t, run: run}
	for len(run) > 0 {
		b, n := bytesOf(run[tagLen:])
		run = run[tagLen+n:]
		k, v, ok := entry(b)
		if !ok || v == nil && f.elem != nil { // bytes that are empty have no value
			return errUnusual
		}
		value := reflect.New(f.typ.Elem())
		if f.elem == nil {
			value.Elem().SetBytes(append(make([]byte, 0, len(v)), v...))
		} else {
			texts, marks := len(d.text), len(d.marks)
			var err error
			if f.elem.own { // nobody has the address of a value in a map: its text need not be made for readers
				err = unmarshal(f.elem.typ, value.UnsafePointer(), v, false)
			} else {
				err = d.message(f.elem, value.UnsafePointer(), v, depth+1)
			}
			if err != nil {
				return err
			}
			d.strings(marks, texts) // the value is copied into the map
		}
		m.SetMapIndex(reflect.ValueOf(text.text(k)).Convert(f.typ.Key()), value.Elem())
	}
	*(*unsafe.Pointer)(at) = m.UnsafePointer()
	return nil
}

// unmarshal decodes a type that does that itself.
func unmarshal(t reflect.Type, p unsafe.Pointer, raw []byte, shared bool) error {
	v := reflect.NewAt(t, p).Interface()
	u, ok := v.(unmarshaler)
	if !ok {
		return errUnusual
	}
	if t.Kind() == reflect.Slice {
		reflect.NewAt(t, p).Elem().Set(reflect.MakeSlice(t, 0, 0)) // as the generated code does
	}
	if err := u.Unmarshal(raw); err != nil {
		return errUnusual
	}
	if t.Kind() == reflect.Slice {
		list := reflect.NewAt(t, p).Elem()
		list.SetCap(list.Len()) // who appends to what is shared must not write into it
	}
	if q, ok := v.(*resource.Quantity); ok && shared {
		_ = q.String() // keeps the text in the value, which would be a race if readers did it
	}
	return nil
}

func (f *field) setVarint(p unsafe.Pointer, v uint64) {
	switch f.kind {
	case kindBool:
		*(*bool)(p) = v != 0
	case kindInt32:
		*(*int32)(p) = int32(v) //nolint:gosec // as the generated code does
	case kindInt64:
		*(*int64)(p) = int64(v) //nolint:gosec // as the generated code does
	case kindPtrBool:
		b := v != 0
		*(**bool)(p) = &b
	case kindPtrInt32:
		n := int32(v) //nolint:gosec // as the generated code does
		*(**int32)(p) = &n
	case kindPtrInt64:
		n := int64(v) //nolint:gosec // as the generated code does
		*(**int64)(p) = &n
	}
}

func (f *field) setFloat(p unsafe.Pointer, v float64) {
	if f.kind == kindPtrFloat64 {
		n := v
		*(**float64)(p) = &n
	} else {
		*(*float64)(p) = v
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
