package decode

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// This is what Plan.Decode would be without unsafe: the same plans, the same rules about what is shared and when, the same
// strings in one allocation, but fields are set by reflection, and parts are kept as reflect.Values. It is here to be
// measured: see BenchmarkRatios. It keeps all parts alive, so it cannot replace Table in an engine as it is.

// plainMessage is a message with the fields' places among a struct's fields.
type plainMessage struct {
	*message
	fields []*plainField // by number
}

type plainField struct {
	*field
	index int
	elem  *plainMessage
}

// plainPlan is a Plan without unsafe.
type plainPlan struct{ root *plainMessage }

func plainFor(t reflect.Type) *plainPlan {
	p := For(t)
	if p == nil {
		return nil
	}
	return &plainPlan{plainOf(p.root, map[*message]*plainMessage{})}
}

func plainOf(m *message, seen map[*message]*plainMessage) *plainMessage {
	if m == nil || seen[m] != nil {
		return seen[m]
	}
	pm := &plainMessage{message: m, fields: make([]*plainField, len(m.fields))}
	seen[m] = pm
	for n, f := range m.fields {
		if f == nil {
			continue
		}
		pm.fields[n] = &plainField{field: f, elem: plainOf(f.elem, seen)}
		for i := range m.typ.NumField() {
			if m.typ.Field(i).Offset == f.offset && m.typ.Field(i).Type == f.typ {
				pm.fields[n].index = i
			}
		}
	}
	return pm
}

// plainTable is a Table without generations.
type plainTable struct {
	*Table // for its seeds, filter, strings and statistics
	shards [shards]plainShard
}

type plainShard struct {
	mu    sync.Mutex
	parts map[partKey]plainValue
}

type plainValue struct {
	v     reflect.Value
	lossy bool
}

type plainPart struct {
	key partKey
	v   plainValue
}

func newPlainTable() *plainTable { return &plainTable{Table: NewTable(1 << 30)} }

func (t *plainTable) get(k partKey) (plainValue, bool) {
	s := &t.shards[k.hash[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.parts[k]
	return v, ok
}

func (t *plainTable) add(parts []plainPart) {
	for _, p := range parts {
		s := &t.shards[p.key.hash[0]%shards]
		s.mu.Lock()
		if s.parts == nil {
			s.parts = map[partKey]plainValue{}
		}
		s.parts[p.key] = p.v
		s.mu.Unlock()
	}
}

// Decode is Plan.Decode.
func (p *plainPlan) Decode(t *plainTable, raw []byte, obj any) (lossy, ok bool) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != p.root.typ {
		return false, false
	}
	d := plainDecoders.Get().(*plainDecoder)
	defer d.free()
	d.t = t
	if err := d.message(p.root, v.Elem(), raw, 0); err != nil {
		return false, false
	}
	d.strings(0, 0)
	if t != nil {
		t.add(d.parts)
	}
	return d.lossy, true
}

type plainDecoder struct {
	t     *plainTable
	lossy bool
	parts []plainPart
	text  []byte
	marks []plainMark
}

type plainMark struct {
	at         reflect.Value
	begin, end int
}

var plainDecoders = sync.Pool{New: func() any { return &plainDecoder{} }}

func (d *plainDecoder) free() {
	clear(d.parts)
	clear(d.marks)
	*d = plainDecoder{parts: d.parts[:0], text: d.text[:0], marks: d.marks[:0]}
	plainDecoders.Put(d)
}

func (d *plainDecoder) strings(marks, text int) {
	if len(d.marks) == marks {
		return
	}
	all := string(d.text[text:])
	for _, m := range d.marks[marks:] {
		m.at.SetString(all[m.begin-text : m.end-text])
	}
	clear(d.marks[marks:])
	d.marks, d.text = d.marks[:marks], d.text[:text]
}

func (d *plainDecoder) str(at reflect.Value, b []byte) {
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
	d.marks = append(d.marks, plainMark{at: at, begin: begin, end: len(d.text)})
}

func (d *plainDecoder) message(m *plainMessage, v reflect.Value, raw []byte, depth int) error {
	if m.own {
		return plainUnmarshal(v, raw, d.t != nil)
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
			last, at = number-1, at+n+size
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

// pointed returns what is to be set: the field, or what it points to from now on.
func (f *plainField) pointed(to reflect.Value) reflect.Value {
	if to.Kind() != reflect.Pointer {
		return to
	}
	to.Set(reflect.New(f.typ.Elem()))
	return to.Elem()
}

func (f *plainField) setVarint(to reflect.Value, x uint64) {
	switch to = f.pointed(to); to.Kind() {
	case reflect.Bool:
		to.SetBool(x != 0)
	case reflect.Int32:
		to.SetInt(int64(int32(x))) //nolint:gosec // as the generated code does
	default:
		to.SetInt(int64(x)) //nolint:gosec // as the generated code does
	}
}

func (d *plainDecoder) value(f *plainField, to reflect.Value, b []byte, depth int) error {
	switch f.kind {
	case kindString, kindPtrString:
		d.str(f.pointed(to), b)
	case kindMessage:
		return d.message(f.elem, to, b, depth+1)
	case kindPtrMessage:
		return d.part(f, to, b, func() error {
			return d.message(f.elem, f.pointed(to), b, depth+1)
		})
	case kindBytes:
		return d.part(f, to, b, func() error {
			to.SetBytes(append(make([]byte, 0, len(b)), b...))
			return nil
		})
	default:
		return errUnusual
	}
	return nil
}

func (d *plainDecoder) repeat(f *plainField, to reflect.Value, run []byte, tagLen, count, depth int) error {
	return d.part(f, to, run, func() error {
		switch f.kind {
		case kindMessages:
			all := reflect.MakeSlice(f.typ, count, count)
			to.Set(all)
			for i := range count {
				b, n := bytesOf(run[tagLen:])
				if err := d.message(f.elem, all.Index(i), b, depth+1); err != nil {
					return err
				}
				run = run[tagLen+n:]
			}
		case kindStrings:
			all := reflect.MakeSlice(f.typ, count, count)
			to.Set(all)
			for i := range count {
				b, n := bytesOf(run[tagLen:])
				run = run[tagLen+n:]
				d.str(all.Index(i), b)
			}
		case kindInt32s, kindInt64s, kindBools:
			all := reflect.MakeSlice(f.typ, count, count)
			to.Set(all)
			for i := range count {
				x, n := uvarint(run[tagLen:])
				f.setVarint(all.Index(i), x)
				run = run[tagLen+n:]
			}
		case kindStringMap:
			return d.stringMap(f, to, run, tagLen, count)
		case kindMap:
			return d.anyMap(f, to, run, tagLen, count, depth)
		default:
			return errUnusual
		}
		return nil
	})
}

func (d *plainDecoder) mapText(run []byte) mapText {
	text := mapText{run: run}
	if d.t != nil {
		text.t = d.t.Table
	}
	return text
}

func (d *plainDecoder) stringMap(f *plainField, to reflect.Value, run []byte, tagLen, count int) error {
	text := d.mapText(run)
	var m map[string]string // where the type is that, which is quicker
	var other reflect.Value
	if f.typ == reflect.TypeFor[map[string]string]() {
		m = make(map[string]string, count)
		to.Set(reflect.ValueOf(m))
	} else {
		other = reflect.MakeMapWithSize(f.typ, count)
		to.Set(other)
	}
	for len(run) > 0 {
		b, n := bytesOf(run[tagLen:])
		run = run[tagLen+n:]
		k, v, ok := entry(b)
		if !ok || v == nil {
			return errUnusual
		}
		if m != nil {
			m[text.text(k)] = text.text(v)
		} else {
			other.SetMapIndex(reflect.ValueOf(text.text(k)).Convert(f.typ.Key()), reflect.ValueOf(text.text(v)).Convert(f.typ.Elem()))
		}
	}
	return nil
}

func (d *plainDecoder) anyMap(f *plainField, to reflect.Value, run []byte, tagLen, count, depth int) error {
	m, text := reflect.MakeMapWithSize(f.typ, count), d.mapText(run)
	for len(run) > 0 {
		b, n := bytesOf(run[tagLen:])
		run = run[tagLen+n:]
		k, v, ok := entry(b)
		if !ok || v == nil && f.elem != nil {
			return errUnusual
		}
		value := reflect.New(f.typ.Elem()).Elem()
		if f.elem == nil {
			value.SetBytes(append(make([]byte, 0, len(v)), v...))
		} else {
			texts, marks := len(d.text), len(d.marks)
			if err := d.message(f.elem, value, v, depth+1); err != nil {
				return err
			}
			d.strings(marks, texts)
		}
		m.SetMapIndex(reflect.ValueOf(text.text(k)).Convert(f.typ.Key()), value)
	}
	to.Set(m)
	return nil
}

func plainUnmarshal(v reflect.Value, raw []byte, shared bool) error {
	u, ok := v.Addr().Interface().(unmarshaler)
	if !ok {
		return errUnusual
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	if err := u.Unmarshal(raw); err != nil {
		return errUnusual
	}
	if v.Kind() == reflect.Slice {
		v.SetCap(v.Len())
	}
	if q, ok := u.(*resource.Quantity); ok && shared {
		_ = q.String()
	}
	return nil
}

func (d *plainDecoder) part(f *plainField, to reflect.Value, raw []byte, fill func() error) error {
	if d.t == nil || len(raw) == 0 || f.elem != nil && f.elem.typ.Size() == 0 || d.t.stat(f.field).resting() {
		return fill()
	}
	key := partKey{[2]uint64{maphash.Bytes(d.t.seeds[0], raw), maphash.Bytes(d.t.seeds[1], raw)}, f.id}
	if v, ok := d.t.get(key); ok {
		d.t.stat(f.field).tried(true)
		to.Set(v.v)
		d.lossy = d.lossy || v.lossy
		return nil
	}
	again := d.t.door.again(key.hash[0] ^ uint64(f.id)*0x9E3779B97F4A7C15)
	d.t.stat(f.field).tried(again)
	if !again {
		return fill()
	}
	texts, marks, lossy := len(d.text), len(d.marks), d.lossy
	d.lossy = false
	if err := fill(); err != nil {
		return err
	}
	d.strings(marks, texts)
	// The Value of a field refers to the object that it is in: what is kept must be a copy that does not.
	kept := reflect.New(f.typ).Elem()
	kept.Set(to)
	d.parts = append(d.parts, plainPart{key, plainValue{kept, d.lossy}})
	d.lossy = d.lossy || lossy
	return nil
}
