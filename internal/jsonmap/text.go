package jsonmap

import (
	"encoding/json"
	"iter"

	"github.com/tattler-dev/tattler/internal/jsonscan"
)

// Members yields the names of an object's fields and their values as text, which is valid JSON. It ends where the text
// ends, is invalid, or is not an object.
func Members(text []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		d := decoder{raw: text}
		if d.next() != '{' {
			return
		}
		for d.pos++; d.next() == '"'; d.pos++ {
			name, err := d.text()
			if err != nil || d.next() != ':' {
				return
			}
			d.pos++
			d.space()
			value, err := d.skip()
			if err != nil || !yield(name, value) || d.next() != ',' {
				return
			}
		}
	}
}

// skip skips a value and returns its text.
func (d *decoder) skip() (json.RawMessage, error) {
	from := d.pos
	end := jsonscan.Value(d.raw, from, maxDepth-d.depth)
	if end < 0 {
		return nil, errSlow
	}
	d.pos = end
	return d.raw[from:end:end], nil
}

// Elements yields the elements of an array as text, which is valid JSON. It ends where the text ends, is invalid, or is not
// an array.
func Elements(text []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		d := decoder{raw: text}
		if d.next() != '[' {
			return
		}
		for d.pos++; ; d.pos++ {
			if c := d.next(); c == ']' || c == 0 {
				return
			}
			value, err := d.skip()
			if err != nil || !yield(value) || d.next() != ',' {
				return
			}
		}
	}
}
