package jsonmap

import (
	"bytes"
	"cmp"
	"slices"
)

// DecodePair is DecodeObject of two versions of an object, of which one may be nil. Objects and arrays that have the
// same text in both, and nearly the same place, are one value in memory, which is quick to make and to
// compare: who changes it in one version changes it in the other.
func DecodePair(before, after []byte) (b, a map[string]any, err error) {
	d := decoder{raw: after, spare: true}
	if d.noted = before != nil; d.noted {
		d.parts = make([]part, 0, len(after)/64)
	}
	if a, err = d.version(); err != nil {
		return nil, nil, err
	}
	e := decoder{raw: before, spare: true, other: &d, known: d.known}
	if b, err = e.version(); err != nil {
		return nil, nil, err
	}
	return b, a, nil
}

// version is DecodeObject; nil has no object.
func (d *decoder) version() (map[string]any, error) {
	if d.raw == nil {
		return nil, nil
	}
	if m, ok := d.whole(); ok {
		return m, nil
	}
	d.parts = nil
	return general(d.raw)
}

// part is an object or array below the root.
type part struct {
	from, to, depth int
	value           any
}

// part reads one, at its bracket.
func (d *decoder) part(bracket byte) (v any, err error) {
	was, same := d.again()
	if same {
		d.pos += was.to - was.from
		return was.value, nil
	}
	at := len(d.parts)
	if d.noted {
		d.parts = append(d.parts, part{from: d.pos, depth: d.depth})
	}
	if bracket == '{' {
		v, err = d.object()
	} else {
		v, err = d.array()
	}
	if d.noted && err == nil {
		d.parts[at].to, d.parts[at].value = d.pos, v
	}
	if was != nil { // what follows here follows there, too
		d.shift = was.to - d.pos
	}
	return v, err
}

// again returns the part of the other object that likely is a version of the one that begins here, and
// whether its text is the same. It is looked for where the last one tells, and in the same place from the
// start and from the end.
func (d *decoder) again() (was *part, same bool) {
	if d.other == nil {
		return nil, false
	}
	for _, shift := range [...]int{d.shift, 0, len(d.other.raw) - len(d.raw)} {
		p := d.other.at(d.pos + shift)
		switch {
		case p == nil || p.depth != d.depth:
		case bytes.HasPrefix(d.raw[d.pos:], d.other.raw[p.from:p.to]):
			d.shift = shift
			return p, true
		case was == nil:
			was = p
		}
	}
	return was, false
}

// at returns the part that begins at a position; nil if none does.
func (d *decoder) at(pos int) *part {
	i, ok := slices.BinarySearchFunc(d.parts, pos, func(p part, pos int) int { return cmp.Compare(p.from, pos) })
	if !ok {
		return nil
	}
	return &d.parts[i]
}
