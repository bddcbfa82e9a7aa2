package decode

import (
	"bytes"
	"math"
	"reflect"
)

// Base is another version of an object, decoded with a table.
type Base struct {
	Raw []byte
	Obj any
}

// DecodeFrom is Decode with a table, for an object of which another version is already decoded. Fields with the same
// bytes are taken from there, so both objects are read-only. These fields do not count in Result.Size, nor in
// Result.Lossy.
func (p *Plan) DecodeFrom(t *Table, raw []byte, obj any, base Base) (r Result, ok bool) {
	v, b := reflect.ValueOf(obj), reflect.ValueOf(base.Obj)
	if t == nil || v.Type() != b.Type() || v.Kind() != reflect.Pointer || v.IsNil() || b.IsNil() || v.Type().Elem() != p.root.typ {
		return Result{}, false
	}
	d := newDecoder(t, p)
	defer d.free()
	if err := d.messageFrom(p.root, v.Elem(), raw, b.Elem(), base.Raw, 0); err != nil {
		return Result{}, false
	}
	return d.done(), true
}

// messageFrom is message with a base, whose bytes were decoded into from.
func (d *decoder) messageFrom(m *message, to reflect.Value, raw []byte, from reflect.Value, base []byte, depth int) error {
	if m.own || depth > maxDepth {
		return d.message(m, to, raw, depth)
	}
	b := cursor{m: m, raw: base}
	for last := 0; len(raw) > 0; {
		n, number, ok := m.fieldOf(raw)
		if !ok || number < last {
			return errUnusual
		}
		f := m.field(number)
		if number == last && f != nil {
			return errUnusual
		}
		last = number
		whole := raw[:n]
		raw = raw[n:]
		was, same := b.find(number)
		switch {
		case f == nil:
			d.lossy = true
		case same && bytes.Equal(whole, was):
			to.Field(f.index).Set(from.Field(f.index))
		case same && f.kind == kindMessage && !f.elem.own:
			in, ok1 := content(whole)
			out, ok2 := content(was)
			if !ok1 || !ok2 {
				return errUnusual
			}
			if err := d.messageFrom(f.elem, to.Field(f.index), in, from.Field(f.index), out, depth+1); err != nil {
				return err
			}
		default:
			if err := d.message(m, to, whole, depth); err != nil {
				return err
			}
		}
	}
	if b.find(math.MaxInt); b.unusual {
		return errUnusual
	}
	return nil
}

// content returns the bytes of a field that has a length, without its tag and length.
func content(whole []byte) ([]byte, bool) {
	_, n := uvarint(whole)
	if n <= 0 {
		return nil, false
	}
	b, size := bytesOf(whole[n:])
	return b, size > 0
}

func (m *message) field(number int) *field {
	if number < len(m.fields) {
		return m.fields[number]
	}
	return nil
}

// fieldOf returns the number and the length of the first field. If it is repeated, that includes all elements.
func (m *message) fieldOf(raw []byte) (n, number int, ok bool) {
	tag, tagLen := uvarint(raw)
	if tagLen <= 0 || tag>>3 > math.MaxInt32 || tag>>3 == 0 {
		return 0, 0, false
	}
	number = int(tag >> 3 & math.MaxInt32)
	f := m.field(number)
	switch {
	case f != nil && tag != f.tag:
		return 0, 0, false
	case f != nil && f.repeated():
		n, _, ok = f.run(raw, tagLen)
		return n, number, ok
	}
	size := skip(raw[tagLen:], tag)
	return tagLen + size, number, size > 0
}

// cursor finds the fields of a message in ascending order.
type cursor struct {
	m       *message
	raw     []byte
	last    int
	unusual bool // a field occurs twice, or the bytes are malformed: a decoded field may then depend on other bytes, too
}

// next returns the next field.
func (c *cursor) next() (whole []byte, number int) {
	n, number, ok := c.m.fieldOf(c.raw)
	if !ok || number <= c.last {
		c.unusual, c.raw = true, nil
		return nil, 0
	}
	return c.raw[:n], number
}

// find returns the bytes of a field. The numbers of successive calls must not go down.
func (c *cursor) find(number int) ([]byte, bool) {
	for len(c.raw) > 0 {
		whole, at := c.next()
		if c.unusual || at > number {
			break
		}
		c.raw, c.last = c.raw[len(whole):], at
		if at == number {
			return whole, true
		}
	}
	return nil, false
}
