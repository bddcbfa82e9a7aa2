package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
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
	text, ok := fields.(json.RawMessage)
	if !ok {
		text = canonical(fields)
	}
	return a.mayRepeat(text) && !texts(text, func(s string) bool { // all texts in a tree are keys
		kind, name, _ := strings.Cut(s, ":")
		return kind != "v" && kind != "k" || texts([]byte(name), func(s string) bool { return !a.plain[s] })
	})
}

// mayRepeat looks for what is hidden in a tree's text, which is JSON within JSON: what is escaped there may be
// anywhere.
func (a *run) mayRepeat(text []byte) bool {
	if !bytes.Contains(text, []byte(`"v:`)) && !bytes.Contains(text, []byte(`"k:`)) {
		return false
	}
	for s := range a.plain {
		escaped := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) })
		if escaped || bytes.Contains(text, []byte(s)) {
			return true
		}
	}
	return false
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
