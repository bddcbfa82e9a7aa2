package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// note records the plain text of values of which all or a part was redacted.
func (a *run) note(v any) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, v := range v {
			a.note(v)
		}
	case []any:
		for _, v := range v {
			a.note(v)
		}
	default:
		if a.plain == nil {
			a.plain = map[string]bool{}
		}
		s, isText := v.(string)
		if !isText {
			s = string(canonical(v))
		}
		a.plain[s] = true
	}
}

// managedFields removes the trees of managed fields that repeat a redacted value: they name elements of sets by
// value (v:) and of other lists by merge keys (k:). The owners of the fields in such a tree are then unknown.
func (a *run) managedFields(t *tree, root *node) {
	entries := t.field(t.field(root, "metadata"), "managedFields")
	if len(a.plain) == 0 || entries == nil || entries.kind != '[' {
		return
	}
	for i := entries.child; i != 0; i = t.at(i).next {
		if fields := t.field(t.at(i), "fieldsV1"); fields != nil && a.repeats([]byte(t.source[fields.from:fields.to])) {
			fields.gone = true
		}
	}
}

// repeats reports whether a tree names an element by a redacted value. An unreadable tree counts as one.
func (a *run) repeats(raw []byte) bool {
	for rest := raw; ; {
		v, k := bytes.Index(rest, []byte(`"v:`)), bytes.Index(rest, []byte(`"k:`))
		if v < 0 && k < 0 {
			return false
		}
		if v < 0 || k >= 0 && k < v {
			v = k
		}
		rest = rest[v:]
		end := keyEnd(rest)
		var key string
		if json.Unmarshal(rest[:end], &key) != nil || !texts([]byte(key[2:]), func(s string) bool { return !a.plain[s] }) {
			return true
		}
		rest = rest[end:]
	}
}

// keyEnd returns the end of the quoted text that b starts with.
func keyEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// texts calls fn with each string, number and boolean of a JSON text, including field names. It returns false
// if fn does, or if the text is invalid.
func texts(raw []byte, fn func(string) bool) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return false
		}
		var s string
		switch t := token.(type) {
		case string:
			s = t
		case json.Number:
			s = t.String()
		case bool:
			s = string(canonical(t))
		default:
			continue
		}
		if !fn(s) {
			return false
		}
	}
}
