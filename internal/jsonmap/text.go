package jsonmap

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Members yields the names of an object's fields and their values as text, which is not validated. It ends where the text
// ends, is invalid, or is not an object.
func Members(text []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		d := decoder{raw: text}
		if d.next() != '{' {
			return
		}
		for d.pos++; d.next() == '"'; d.pos++ {
			name, err := d.name()
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

// name reads a field's name, at its quote, with any escapes.
func (d *decoder) name() (string, error) {
	from := d.pos
	s, err := d.text()
	if err == nil {
		return s, nil
	}
	d.pos = from
	quoted, err := d.skip()
	if err == nil {
		err = json.Unmarshal(quoted, &s)
	}
	return s, err
}

// skip skips a value and returns its text, judging by brackets and quotes alone.
func (d *decoder) skip() (json.RawMessage, error) {
	from, open := d.pos, 0
	for d.pos < len(d.raw) {
		switch d.raw[d.pos] {
		case '"':
			if !d.skipText() {
				return nil, errSlow
			}
			d.pos--
		case '{', '[':
			open++
		case '}', ']', ',':
			if open == 0 { // after a number or a literal
				return d.raw[from:d.pos:d.pos], nil
			}
			if d.raw[d.pos] != ',' {
				open--
			}
		default:
			d.pos++
			continue
		}
		d.pos++
		if open == 0 {
			return d.raw[from:d.pos:d.pos], nil
		}
	}
	return nil, errSlow
}

// skipText skips a string, at its quote; false if it does not end.
func (d *decoder) skipText() bool {
	for {
		d.pos++
		n := bytes.IndexByte(d.raw[d.pos:], '"')
		if n < 0 {
			return false
		}
		d.pos += n
		slashes := 0
		for d.raw[d.pos-1-slashes] == '\\' { // stops at the string's first quote at the latest
			slashes++
		}
		if slashes%2 == 0 {
			d.pos++
			return true
		}
	}
}
