package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// note notes the plain values of what is hidden, as text.
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

// managedFields takes from the entries of an object's managed fields the trees that repeat a value that is
// hidden: they name elements of sets by their values (v:), and those of other lists by their merge keys (k:).
// Nobody can tell then who owns what is in such a tree.
func (a *run) managedFields(obj map[string]any) {
	if len(a.plain) == 0 {
		return
	}
	meta, _ := obj["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if fields, ok := entry["fieldsV1"]; ok && a.repeats(fields) {
			delete(entry, "fieldsV1")
		}
	}
}

// repeats tells whether a tree names an element by a value that is hidden. One that cannot be read may.
func (a *run) repeats(fields any) bool {
	raw, ok := fields.(json.RawMessage)
	if !ok {
		raw = canonical(fields)
	}
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

// keyEnd is where the text in quotes ends that b begins with.
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

// texts calls fn with each string, number and boolean of a JSON text, names of fields included. It returns
// false where fn does, or where the text cannot be read.
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
