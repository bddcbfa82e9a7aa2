package decode

import (
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// JSON decodes an object as util/json.Unmarshal decodes into a map[string]any: integers that fit are int64, other numbers
// float64, and of a key that comes twice the last value counts. With a table, the object shares parts with others
// and is read-only; with nil it is the caller's.
//
// What servers seldom write (a key that comes twice, half of a surrogate pair, bytes that are not UTF-8, deep nesting,
// malformed text, null) is left to util/json, and then nothing is shared and the Size is 0.
//
// Raw is not kept.
func JSON(t *Table, raw []byte) (map[string]any, Result, error) {
	if m, r, ok := quickJSON(t, raw); ok {
		return m, r, nil
	}
	var m map[string]any
	if err := utiljson.Unmarshal(raw, &m); err != nil {
		return nil, Result{}, err
	}
	return m, Result{}, nil
}

// quickJSON is JSON. Ok is false if util/json must decide.
func quickJSON(t *Table, raw []byte) (m map[string]any, r Result, ok bool) {
	d := jsonDecoders.Get().(*jsonDecoder)
	defer d.free()
	d.t, d.raw = t, raw
	if t != nil && !d.index() || d.next() != '{' {
		return nil, Result{}, false
	}
	if m, ok = d.object(0); !ok || d.next() != 0 || d.pos < len(raw) {
		return nil, Result{}, false
	}
	if t != nil {
		t.add(d.parts)
		t.touch()
	}
	return m, Result{Size: d.size}, true
}

// jsonDecoder decodes one object. Unlike in protobuf, each unshared string has its own allocation: it needs one for
// its interface anyway.
type jsonDecoder struct {
	t       *Table
	raw     []byte
	pos     int
	depth   int
	members []member // members of unfinished objects, which become maps once their number is known
	values  []any    // values of unfinished arrays
	scratch []byte   // for strings with escapes
	keys    keyCache

	spans []span // see index
	span  int    // of the next bracket
	open  []int

	size   int64  // as Result.Size
	parts  []part // to be added to the table
	inPart bool   // see decoder.inPart
}

// member is a key of an object, with its value.
type member struct {
	key   string
	value any
}

var jsonDecoders = sync.Pool{New: func() any { return &jsonDecoder{} }}

func (d *jsonDecoder) free() {
	const keep = 1 << 16
	if cap(d.members) > keep/32 || cap(d.values) > keep/16 || cap(d.scratch) > keep || cap(d.spans) > keep/16 {
		return
	}
	clear(d.parts)
	clear(d.members[:cap(d.members)])
	clear(d.values[:cap(d.values)])
	d.t, d.raw, d.pos, d.depth, d.members, d.values = nil, nil, 0, 0, d.members[:0], d.values[:0]
	d.spans, d.span, d.open, d.size, d.parts, d.inPart = d.spans[:0], 0, d.open[:0], 0, d.parts[:0], false
	jsonDecoders.Put(d)
}

// next skips white space and returns the byte there; 0 at the end.
func (d *jsonDecoder) next() byte {
	for ; d.pos < len(d.raw); d.pos++ {
		switch c := d.raw[d.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// value decodes a value. Path is a hash of the keys that lead to it. Ok is false if util/json must decide.
func (d *jsonDecoder) value(path uint64, key string) (v any, ok bool) {
	switch c := d.next(); c {
	case '"':
		return d.text()
	case '{', '[':
		return d.container(c, path, key)
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	case 'n':
		return nil, d.literal("null")
	default:
		return d.number()
	}
}

// literal skips a word.
func (d *jsonDecoder) literal(word string) bool {
	if len(d.raw)-d.pos < len(word) || string(d.raw[d.pos:d.pos+len(word)]) != word {
		return false
	}
	d.pos += len(word)
	return true
}

// object decodes an object, at its brace.
func (d *jsonDecoder) object(path uint64) (m map[string]any, ok bool) {
	if d.depth == maxDepth {
		return nil, false
	}
	d.depth++
	d.span++
	d.pos++
	from := len(d.members)
	for c := d.next(); c != '}'; {
		if c != '"' {
			return nil, false
		}
		key, ok := d.key()
		if !ok || d.next() != ':' {
			return nil, false
		}
		d.pos++
		v, ok := d.value(path, key)
		if !ok {
			return nil, false
		}
		d.members = append(d.members, member{key, v})
		if c = d.next(); c == ',' {
			d.pos++
			if c = d.next(); c == '}' {
				return nil, false
			}
		} else if c != '}' {
			return nil, false
		}
	}
	d.pos++
	d.depth--
	all := d.members[from:]
	d.members = d.members[:from]
	d.size += goMapSize(len(all))
	m = make(map[string]any, len(all))
	for i := range all {
		m[all[i].key] = all[i].value
	}
	return m, len(m) == len(all)
}

// array decodes an array, at its bracket.
func (d *jsonDecoder) array(path uint64) (list []any, ok bool) {
	if d.depth == maxDepth {
		return nil, false
	}
	d.depth++
	d.span++
	d.pos++
	from := len(d.values)
	for c := d.next(); c != ']'; {
		v, ok := d.value(path, "")
		if !ok {
			return nil, false
		}
		d.values = append(d.values, v)
		if c = d.next(); c == ',' {
			d.pos++
			if c = d.next(); c == ']' {
				return nil, false
			}
		} else if c != ']' {
			return nil, false
		}
	}
	d.pos++
	d.depth--
	all := d.values[from:]
	d.values = d.values[:from]
	d.size += 24 + 16*int64(len(all))
	list = make([]any, len(all))
	copy(list, all)
	return list, true
}

// goMapSize estimates the memory of a map[string]any of n entries: groups of eight, at most seven eighths full once
// there are several.
func goMapSize(n int) int64 {
	const header, group, directory = 48, 288, 64
	switch {
	case n == 0:
		return header
	case n <= 8:
		return header + group
	}
	groups := int64(2)
	for groups*7 < int64(n) {
		groups *= 2
	}
	return header + directory + groups*group
}
