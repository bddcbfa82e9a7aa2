package decode

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"sync"
)

// Share replaces parts of an object by equal ones of other objects. The object must not be visible to others yet, and
// is read-only afterwards. It must come from a JSON decoder, not from a decoder of its type. The result estimates the
// object's heap in bytes, without shared parts. Ok is false if the type is unknown; the object is then unchanged.
//
// Contents of map values and interfaces are shared only together with the map. Parts with unexported fields, or with
// types that have their own decoder, stay as they are.
func (t *Table) Share(obj any) (size int64, ok bool) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return 0, false
	}
	s := shapeOf(v.Type().Elem())
	if s == nil || s.form != formStruct {
		return 0, false
	}
	CacheQuantities(obj)
	d := sharers.Get().(*sharer)
	defer d.free()
	d.t = t
	if d.write(s, v.Elem(), 0); d.deep {
		return 0, false
	}
	d.share(s, v.Elem())
	t.add(d.parts)
	t.touch()
	return d.size + s.size, true
}

// sharer shares the parts of one object: write makes the bytes by which parts are compared, and share looks them up.
type sharer struct {
	t      *Table
	raw    []byte
	spans  []partSpan // of the parts, in the order of share
	span   int        // of the next part
	inMap  int        // nesting in map values, whose parts have no spans
	keys   []string
	size   int64
	parts  []part
	inPart bool // see decoder.inPart
	deep   bool // nested too deeply
}

// partSpan has the bytes of a part. Next is the number of the first part behind it.
type partSpan struct {
	begin, end, next int
	known            bool // the bytes determine the part
}

var sharers = sync.Pool{New: func() any { return &sharer{} }}

func (d *sharer) free() {
	const keep = 1 << 20
	clear(d.parts)
	clear(d.keys[:cap(d.keys)])
	*d = sharer{raw: d.raw[:0], spans: d.spans[:0], keys: d.keys[:0], parts: d.parts[:0]}
	if cap(d.raw) <= keep {
		sharers.Put(d)
	}
}

// write appends bytes that differ wherever values differ. It reports whether they determine the value.
func (d *sharer) write(s *shape, v reflect.Value, depth int) bool {
	switch {
	case s == nil:
		return false
	case depth > maxDepth:
		d.deep = true
		return false
	case !s.form.part():
		return d.writeValue(s, v, depth)
	case d.inMap > 0:
		return d.writePart(s, v, depth)
	}
	at := len(d.spans)
	d.spans = append(d.spans, partSpan{begin: len(d.raw)})
	known := d.writePart(s, v, depth)
	p := &d.spans[at]
	p.end, p.next, p.known = len(d.raw), len(d.spans), known
	return known
}

func (d *sharer) number(n uint64) { d.raw = binary.LittleEndian.AppendUint64(d.raw, n) }

func (d *sharer) text(s string) { d.raw = append(binary.AppendUvarint(d.raw, uint64(len(s))), s...) }

func (d *sharer) writeValue(s *shape, v reflect.Value, depth int) bool {
	switch s.form {
	case formBool:
		d.raw = append(d.raw, 0)
		if v.Bool() {
			d.raw[len(d.raw)-1] = 1
		}
	case formInt:
		d.raw = binary.AppendVarint(d.raw, v.Int())
	case formUint:
		d.raw = binary.AppendUvarint(d.raw, v.Uint())
	case formFloat:
		d.number(math.Float64bits(v.Float()))
	case formText:
		d.text(v.String())
	case formInterface:
		return v.IsNil()
	case formTime: // the fields, not the instant: equal times may differ in them
		d.number(v.Field(0).Uint())
		d.number(uint64(v.Field(1).Int())) //nolint:gosec // the bits are what counts
		d.number(uint64(v.Field(2).Pointer()))
	case formQuantity:
		return d.writeQuantity(v)
	case formStruct:
		known := true
		for _, f := range s.fields {
			known = d.write(f.shape, v.Field(f.index), depth+1) && known
		}
		return known
	}
	return true
}

// writeQuantity writes a quantity's number, its format, and the text that String has stored in it.
func (d *sharer) writeQuantity(v reflect.Value) bool {
	i, dec, text, format := v.FieldByName("i"), v.FieldByName("d"), v.FieldByName("s"), v.FieldByName("Format")
	if !dec.IsZero() {
		return false // a number of many digits, behind a pointer
	}
	d.raw = binary.AppendVarint(binary.AppendVarint(d.raw, i.Field(0).Int()), i.Field(1).Int())
	d.text(text.String())
	d.text(format.String())
	return true
}

func (d *sharer) writePart(s *shape, v reflect.Value, depth int) bool {
	if v.IsNil() {
		d.raw = append(d.raw, 0)
		return true
	}
	d.raw = append(d.raw, 1)
	if s.form == formPointer {
		return d.write(s.elem, v.Elem(), depth+1)
	}
	d.raw = binary.AppendUvarint(d.raw, uint64(v.Len()))
	known := true
	switch s.form {
	case formBytes:
		d.raw = append(d.raw, v.Bytes()...)
	case formSlice:
		for i := range v.Len() {
			known = d.write(s.elem, v.Index(i), depth+1) && known
		}
	case formMap:
		return d.writeMap(s, v, depth)
	}
	return known
}

// writeMap writes a map's entries in the order of their keys.
func (d *sharer) writeMap(s *shape, v reflect.Value, depth int) bool {
	if s.elem == nil {
		return false
	}
	d.inMap++
	defer func() { d.inMap-- }()
	from := len(d.keys)
	if m, ok := v.Interface().(map[string]string); ok {
		for k := range m {
			d.keys = append(d.keys, k)
		}
		slices.Sort(d.keys[from:])
		for _, k := range d.keys[from:] {
			d.text(k)
			d.text(m[k])
		}
		d.keys = d.keys[:from]
		return true
	}
	for i := v.MapRange(); i.Next(); {
		d.keys = append(d.keys, i.Key().String())
	}
	slices.Sort(d.keys[from:])
	known, key := true, reflect.New(v.Type().Key()).Elem()
	for at := from; at < from+v.Len(); at++ { // a map within may move the keys
		d.text(d.keys[at])
		key.SetString(d.keys[at])
		known = d.write(s.elem, v.MapIndex(key), depth+1) && known
	}
	d.keys = d.keys[:from]
	return known
}

// share visits a value in the same order as write.
func (d *sharer) share(s *shape, v reflect.Value) {
	switch {
	case s == nil:
	case s.form == formText:
		d.shareText(v)
	case s.form == formStruct:
		for _, f := range s.fields {
			d.share(f.shape, v.Field(f.index))
		}
	case s.form.part():
		d.sharePart(s, v)
	}
}

func (d *sharer) shareText(v reflect.Value) {
	s := v.String()
	if s == "" {
		return
	}
	if c := d.t.cachedText(s); c != nil {
		v.SetString(c.text)
		return
	}
	d.size += int64(len(s))
}

func (d *sharer) sharePart(s *shape, v reflect.Value) {
	p := d.spans[d.span]
	if v.IsNil() {
		d.span = p.next
		return
	}
	stat := &d.t.stats[s.stat%len(d.t.stats)]
	if !p.known || stat.resting() {
		d.inside(s, v)
		return
	}
	raw := d.raw[p.begin:p.end]
	id := d.t.key(s.id, raw)
	if have, ok := d.t.get(id, raw); ok {
		stat.tried(true)
		v.Set(reflect.ValueOf(have.v))
		d.span = p.next
		return
	}
	if d.inPart {
		d.inside(s, v)
		return
	}
	again := d.t.door.again(id.hash ^ uint64(s.id)*mix)
	stat.tried(again)
	if !again {
		d.inside(s, v)
		return
	}
	size := d.size
	d.inPart = true
	d.inside(s, v)
	d.inPart = false
	d.parts = append(d.parts, part{id, value{v: v.Interface(), check: d.t.check(raw), bytes: cost(d.size - size)}})
}

// inside shares the contents of a part and cuts off unused capacity: JSON decoders make slices with spare capacity.
func (d *sharer) inside(s *shape, v reflect.Value) {
	end := d.spans[d.span].next
	d.span++
	switch s.form {
	case formPointer:
		if s.elem != nil {
			d.size += s.elem.size
		}
		d.share(s.elem, v.Elem())
	case formBytes, formSlice:
		trimSlice(v)
		d.size += int64(v.Len()) * int64(v.Type().Elem().Size())
		if s.form == formBytes {
			break
		}
		for i := range v.Len() {
			d.share(s.elem, v.Index(i))
		}
	case formMap:
		trimMap(s, v)
		d.size += mapSize(v.Len(), v.Len()*int(v.Type().Elem().Size()))
	}
	d.span = end
}

// trimSlice removes the room that a slice has for more, and reports whether it had any: an append would write there.
func trimSlice(v reflect.Value) bool {
	if v.Cap() == v.Len() {
		return false
	}
	exact := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(exact, v)
	v.Set(exact)
	return true
}

// trimMap trims all slices in a map's values.
func trimMap(s *shape, v reflect.Value) {
	if s.elem == nil || s.elem.form < formStruct {
		return
	}
	value := reflect.New(v.Type().Elem()).Elem()
	for i := v.MapRange(); i.Next(); {
		value.SetIterValue(i)
		if trim(s.elem, value) {
			v.SetMapIndex(i.Key(), value)
		}
	}
}

// trim trims all slices in a value, and reports whether the value itself is another one now.
func trim(s *shape, v reflect.Value) (changed bool) {
	switch {
	case s == nil:
	case s.form == formStruct:
		for _, f := range s.fields {
			changed = trim(f.shape, v.Field(f.index)) || changed
		}
	case !s.form.part() || v.IsNil():
	case s.form == formPointer:
		trim(s.elem, v.Elem())
	case s.form == formMap:
		trimMap(s, v)
	default:
		if s.form == formSlice {
			for i := range v.Len() {
				trim(s.elem, v.Index(i))
			}
		}
		return trimSlice(v)
	}
	return changed
}
