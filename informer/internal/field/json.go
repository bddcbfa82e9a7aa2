package field

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reader reads JSON whose syntax has been checked. On other JSON its result is arbitrary, but it ends.
type reader struct {
	*Path
	b   []byte
	pos int
	out []string
}

func (p *Path) readJSON(raw []byte) ([]string, bool) {
	r := reader{Path: p, b: raw}
	ok := r.value(0) && r.next() == 0
	return r.out, ok
}

// next skips white space and returns the byte after it; 0 at the end.
func (r *reader) next() byte {
	for ; r.pos < len(r.b); r.pos++ {
		if c := r.b[r.pos]; c > ' ' {
			return c
		}
	}
	return 0
}

// value consumes a value and collects the values to which the steps from i lead. It returns false to give up.
func (r *reader) value(i int) bool {
	c := r.next()
	if c == 'n' {
		if i == 0 {
			return false
		}
		if r.steps[i-1].zero {
			r.out = append(r.out, r.zeroValue())
		}
		return r.word("null")
	}
	for i < len(r.steps) && r.steps[i].inline {
		i++
	}
	if i == len(r.steps) {
		return r.scalar(c)
	}
	want := byte('{')
	if r.steps[i].kind == toEach {
		want = '['
	}
	switch {
	case c == want && c == '{':
		return r.members(i)
	case c == want:
		return r.elements(i)
	case r.leaf != nil: // the decoder refuses it
		return false
	}
	return r.skip(c)
}

// members consumes an object.
func (r *reader) members(i int) bool {
	s := &r.steps[i]
	found := false
	r.pos++
	for c := r.next(); c != '}'; c = r.next() {
		if c == ',' {
			r.pos++
			c = r.next()
		}
		if c != '"' {
			return false
		}
		key, ok := r.text()
		if !ok || r.next() != ':' {
			return false
		}
		r.pos++
		if !is(key, s.name) {
			if !r.skip(r.next()) {
				return false
			}
			continue
		}
		if found || !r.value(i+1) { // decoders merge duplicates, or take the last
			return false
		}
		found = true
	}
	r.pos++
	if !found && s.kind == toField && s.zero {
		r.out = append(r.out, r.zeroValue())
	}
	return true
}

// elements consumes an array.
func (r *reader) elements(i int) bool {
	r.pos++
	for c := r.next(); c != ']'; c = r.next() {
		if c == ',' {
			r.pos++
		}
		if !r.value(i + 1) {
			return false
		}
	}
	r.pos++
	return true
}

// scalar consumes the path's value.
func (r *reader) scalar(c byte) bool {
	kind := reflect.Invalid
	if r.leaf != nil {
		kind = r.leaf.Kind()
	}
	switch {
	case c == '"' && (kind == reflect.String || kind == reflect.Invalid):
		quoted, ok := r.text()
		if !ok {
			return false
		}
		text, ok := unquote(quoted)
		r.out = append(r.out, text)
		return ok
	case c == 't' && (kind == reflect.Bool || kind == reflect.Invalid):
		r.out = append(r.out, "true")
		return r.word("true")
	case c == 'f' && (kind == reflect.Bool || kind == reflect.Invalid):
		r.out = append(r.out, "false")
		return r.word("false")
	case (c == '-' || '0' <= c && c <= '9') && kind != reflect.String && kind != reflect.Bool:
		return r.number(kind)
	case kind != reflect.Invalid:
		return false
	}
	return r.skip(c)
}

func (r *reader) number(kind reflect.Kind) bool {
	from := r.pos
	r.skip(r.b[from])
	text := string(r.b[from:r.pos])
	switch {
	case kind == reflect.Invalid: // as the decoder of unstructured objects does
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && !strings.Contains(text, ".") {
			r.out = append(r.out, strconv.FormatInt(n, 10))
		}
		return true
	case reflect.Uint <= kind && kind <= reflect.Uintptr:
		n, err := strconv.ParseUint(text, 10, r.leaf.Bits())
		r.out = append(r.out, strconv.FormatUint(n, 10))
		return err == nil
	}
	n, err := strconv.ParseInt(text, 10, r.leaf.Bits())
	r.out = append(r.out, strconv.FormatInt(n, 10))
	return err == nil
}

func (r *reader) word(w string) bool {
	if !bytes.HasPrefix(r.b[r.pos:], []byte(w)) {
		return false
	}
	r.pos += len(w)
	return true
}

// text consumes a string and returns it with its quotes.
func (r *reader) text() ([]byte, bool) {
	from := r.pos
	for at := from + 1; ; {
		n := bytes.IndexByte(r.b[at:], '"')
		if n < 0 {
			return nil, false
		}
		at += n
		slashes := 0
		for r.b[at-1-slashes] == '\\' {
			slashes++
		}
		at++
		if slashes%2 == 0 {
			r.pos = at
			return r.b[from:at], true
		}
	}
}

// skip consumes a value that begins with c.
func (r *reader) skip(c byte) bool {
	switch c {
	case 0:
		return false
	case '"':
		_, ok := r.text()
		return ok
	case '{', '[':
		return r.container()
	}
	for r.pos < len(r.b) {
		switch r.b[r.pos] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return true
		}
		r.pos++
	}
	return true
}

// container consumes an object or array by counting brackets.
func (r *reader) container() bool {
	for depth := 0; r.pos < len(r.b); {
		switch r.b[r.pos] {
		case '"':
			if _, ok := r.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if r.pos++; depth == 0 {
			return true
		}
	}
	return false
}

// is reports whether a quoted string equals name.
func is(quoted []byte, name string) bool {
	if plain := quoted[1 : len(quoted)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return string(plain) == name
	}
	text, ok := unquote(quoted)
	return ok && text == name
}

// unquote returns a string's value. It replaces invalid UTF-8 as the decoders do.
func unquote(quoted []byte) (string, bool) {
	plain := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain), true
	}
	var text string
	err := json.Unmarshal(quoted, &text)
	return text, err == nil
}
