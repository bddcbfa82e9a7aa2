package jsonmap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// DecodePair is DecodeObject of two versions of an object, of which one may be nil. Objects and arrays with the same text
// in both, at about the same position, are one value in memory, which is fast to decode and to compare. A caller that
// modifies such a value in one version modifies it in the other.
func DecodePair(before, after []byte) (b, a map[string]any, err error) {
	b, a, _, err = DecodeSized(before, after, false)
	return b, a, err
}

// DecodeChanged is DecodePair without the top-level fields with the same text in both, such as spec or status, which a
// comparison does not need. Metadata and fields of one version only are never left out.
func DecodeChanged(before, after []byte) (b, a map[string]any, err error) {
	b, a, _, err = DecodeSized(before, after, true)
	return b, a, err
}

// DecodeSized is DecodeChanged or DecodePair. Size is the length of the decoded text: shared parts count once, and parts
// left out do not count.
func DecodeSized(before, after []byte, changed bool) (b, a map[string]any, size int, err error) {
	var same map[string]int
	if changed && before != nil && after != nil {
		same = common(before, after)
	}
	d := decoder{raw: after, spare: true, same: same}
	if d.noted = before != nil; d.noted {
		d.parts = make([]part, 0, len(after)/64)
	}
	if a, err = d.version(); err != nil {
		return nil, nil, 0, err
	}
	e := decoder{raw: before, spare: true, same: same, other: &d, known: d.known}
	if b, err = e.version(); err != nil {
		return nil, nil, 0, err
	}
	size = len(before) + len(after) - e.shared
	for _, length := range same {
		size -= 2 * length
	}
	return b, a, size, nil
}

// common returns the fields, except metadata, with the same text in both objects, and the lengths of their values; nil if
// a field is repeated.
func common(before, after []byte) map[string]int {
	old, now, same := map[string]json.RawMessage{}, map[string]bool{}, map[string]int{}
	for name, text := range Members(before) {
		if old[name] != nil {
			return nil
		}
		old[name] = text
	}
	for name, text := range Members(after) {
		if now[name] {
			return nil
		}
		if now[name] = true; name != "metadata" && bytes.Equal(text, old[name]) {
			same[name] = len(text)
		}
	}
	return same
}

// version is DecodeObject; nil for a nil text.
func (d *decoder) version() (map[string]any, error) {
	if d.raw == nil {
		return nil, nil
	}
	if m, ok := d.whole(); ok {
		return m, nil
	}
	d.parts, d.shared = nil, 0
	m, err := general(d.raw)
	for name := range d.same {
		delete(m, name)
	}
	return m, err
}

// part is an object or array below the root.
type part struct {
	from, to, depth int
	value           any
	text            bool // depends on its place: it contains text, or is metadata that is not shared
}

// part reads an object or array, at its bracket.
func (d *decoder) part(bracket byte) (v any, err error) {
	was, same := d.again()
	if same && !d.ownMetadata() {
		if d.noted {
			d.inherit(was)
		}
		if was.text {
			d.texts++
		}
		d.pos += was.to - was.from
		d.shared += was.to - was.from
		return was.value, nil
	}
	at, texts := len(d.parts), d.texts
	if d.noted {
		d.parts = append(d.parts, part{from: d.pos, depth: d.depth})
	}
	if bracket == '{' {
		v, err = d.object()
	} else {
		v, err = d.array()
	}
	if d.noted && err == nil {
		p := &d.parts[at]
		p.to, p.value, p.text = d.pos, v, d.texts > texts || d.ownMetadata()
	}
	if was != nil { // what follows is likely the same in both
		d.shift = was.to - d.pos
	}
	return v, err
}

// maxAgain is the depth below which shared parts are not searched: each level may compare everything below it.
const maxAgain = 64

// again returns the part of the other object that likely corresponds to the one that begins here, and whether their texts
// are equal. It looks at the distance of the last match, and at the same distance from the start and from the end.
func (d *decoder) again() (was *part, same bool) {
	if d.other == nil || d.depth > maxAgain {
		return nil, false
	}
	shifts := [...]int{d.shift, 0, len(d.other.raw) - len(d.raw)}
	for i, shift := range shifts {
		if slices.Contains(shifts[:i], shift) {
			continue
		}
		p := d.other.at(d.pos + shift)
		switch {
		case p == nil || p.depth != d.depth:
		case (!p.text || d.inEntries()) && bytes.HasPrefix(d.raw[d.pos:], d.other.raw[p.from:p.to]):
			d.shift = shift
			return p, true
		case was == nil:
			was = p
		}
	}
	return was, false
}

// at returns the part that begins at a position, or nil.
func (d *decoder) at(pos int) *part {
	i, ok := d.find(pos)
	if !ok {
		return nil
	}
	return &d.parts[i]
}

// find returns the index of the part that begins at a position, or where it would be.
func (d *decoder) find(pos int) (i int, ok bool) {
	return slices.BinarySearchFunc(d.parts, pos, func(p part, pos int) int { return cmp.Compare(p.from, pos) })
}
