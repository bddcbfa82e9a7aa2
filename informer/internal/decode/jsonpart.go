package decode

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// span is the end of an object or array, and the number of the first bracket after it.
type span struct{ end, next int }

// index finds the ends of all objects and arrays, so that parts in the table can be skipped. It inspects brackets and
// quotes only, and reports whether they match: decoding checks the rest.
func (d *jsonDecoder) index() bool {
	for i := 0; i < len(d.raw); i++ {
		switch d.raw[i] {
		case '"':
			n := toQuote(d.raw[i+1:])
			if n < 0 {
				return false
			}
			i += 1 + n
		case '{', '[':
			d.open = append(d.open, len(d.spans))
			d.spans = append(d.spans, span{})
		case '}', ']':
			last := len(d.open) - 1
			if last < 0 {
				return false
			}
			d.spans[d.open[last]] = span{end: i + 1, next: len(d.spans)}
			d.open = d.open[:last]
		}
	}
	return len(d.open) == 0
}

// toQuote returns the number of bytes before the quote that ends a string, or -1.
func toQuote(b []byte) int {
	const each = 0x0101010101010101
	for n := 0; n < len(b); {
		if len(b)-n >= 8 { // as in plain
			w := binary.LittleEndian.Uint64(b[n:])
			quote, slash := w^each*'"', w^each*'\\'
			found := ((quote-each)&^quote | (slash-each)&^slash) & (each * 0x80)
			if found == 0 {
				n += 8
				continue
			}
			n += bits.TrailingZeros64(found) / 8
		}
		switch b[n] {
		case '"':
			return n
		case '\\':
			n++
		}
		n++
	}
	return -1
}

// jsonPart is partKey.typ for JSON. For protobuf it is an address, which is larger.
const jsonPart = 1

// container decodes an object or an array, at its bracket, or takes an equal one from the table.
func (d *jsonDecoder) container(bracket byte, path uint64, key string) (any, bool) {
	if d.t == nil {
		return d.fill(bracket, 0)
	}
	s := d.spans[d.span]
	raw := d.raw[d.pos:s.end]
	if string(raw) == "{}" {
		d.pos, d.span = s.end, s.next
		return *d.t.empty.Load(), true
	}
	path = path*mix + 1
	if key != "" {
		path += maphash.String(d.t.seeds[0], key)
	}
	stat := &d.t.stats[path>>32%uint64(len(d.t.stats))]
	if stat.resting() {
		return d.fill(bracket, path)
	}
	id := d.t.key(jsonPart, raw)
	if v, ok := d.t.get(id, raw); ok {
		stat.tried(true)
		d.pos, d.span = s.end, s.next
		return v.v, true
	}
	if d.inPart {
		return d.fill(bracket, path)
	}
	again := d.t.door.again(id.hash)
	stat.tried(again)
	if !again {
		return d.fill(bracket, path)
	}
	return d.newPart(bracket, path, id, raw)
}

// fill decodes an object or an array.
func (d *jsonDecoder) fill(bracket byte, path uint64) (any, bool) {
	if bracket == '{' {
		return d.object(path)
	}
	return d.array(path)
}

// newPart decodes a part that enters the table once the object is complete.
func (d *jsonDecoder) newPart(bracket byte, path uint64, id partKey, raw []byte) (any, bool) {
	size := d.size
	d.inPart = true
	v, ok := d.fill(bracket, path)
	d.inPart = false
	if ok {
		d.parts = append(d.parts, part{id, value{v: v, check: d.t.check(raw), bytes: cost(d.size - size)}})
	}
	return v, ok
}
