package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

const (
	secrets    = "secrets"
	configMaps = "configmaps"
)

// run redacts the values of one object.
type run struct {
	key      []byte
	mac      hash.Hash // nil until a value is redacted
	sum      []byte
	resource string
	id       string          // the object's UID
	path     place           // of the current value
	hidden   int             // number of redacted values
	within   int             // nesting of texts; see run.embedded
	made     map[string]bool // the markers of this run, which no other rule redacts again
	plain    map[string]bool // the plain text of values; see note
	again    bool            // markers of earlier runs stay, too
}

func newRun(key []byte, resource string, obj map[string]any) *run {
	meta, _ := obj["metadata"].(map[string]any)
	id, _ := meta["uid"].(string)
	if id == "" { // client-go's fakes leave it empty: the name distinguishes objects
		id = fmt.Sprintf("%s %q %q", resource, meta["namespace"], meta["name"])
	}
	return &run{key: key, resource: resource, id: id, path: place{steps: make([]step, 0, 16)}}
}

// Enter, Leave and Selected implement the visitor of a user's rule.
func (a *run) Enter(e diff.Elem) { a.path.push(step{other: &e}) }

// Leave undoes Enter.
func (a *run) Leave() { a.path.pop() }

// Selected redacts a value.
func (a *run) Selected(v any) any { return a.hide(v) }

// under runs fn with the field's path.
func (a *run) under(key string, fn func()) {
	a.path.pushField(key)
	fn()
	a.path.pop()
}

// set redacts a field, if present; setAll all fields of a map.
func (a *run) set(m map[string]any, key string) {
	if v, ok := m[key]; ok {
		a.under(key, func() { m[key] = a.hide(v) })
	}
}

func (a *run) setAll(m map[string]any) {
	for key := range m {
		a.set(m, key)
	}
}

// hide returns the marker of a value. Null reveals nothing and stays.
func (a *run) hide(v any) any {
	s, isString := v.(string)
	if v == nil || isString && a.made[s] {
		return v
	}
	if _, hidden := diff.Hidden(v); hidden && a.again {
		return v
	}
	form, text := "string", []byte(s)
	if !isString {
		form, text = "json", canonical(v)
	}
	if a.mac == nil {
		a.mac, a.made = hmac.New(sha256.New, a.key), map[string]bool{}
	}
	a.mac.Reset()
	for _, part := range [...][]byte{[]byte(a.id), a.path.identity(), []byte(form), text} {
		// Prefixing each part with its length makes the encoding unambiguous.
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		a.mac.Write(length[:])
		a.mac.Write(part)
	}
	a.sum = a.mac.Sum(a.sum[:0])
	marker := diff.HiddenPrefix + hex.EncodeToString(a.sum[:8])
	a.made[marker] = true
	a.hidden++
	a.note(v)
	return marker
}

// reveal is Redactor.Reveal for an object or a part of one.
func (a *run) reveal(m, later map[string]any) {
	for key, old := range m {
		a.under(key, func() {
			now := later[key]
			_, hidden := diff.Hidden(old)
			part, _ := old.(map[string]any)
			then, _ := now.(map[string]any)
			switch {
			case hidden && a.hide(now) == old:
				m[key] = now
			case part != nil && then != nil:
				a.reveal(part, then)
			}
		})
	}
}

// maxWithin bounds the nesting of texts, as JSON in JSON, that are searched.
const maxWithin = 4

// text returns a text without its credentials. A one-line text is redacted whole; in multi-line texts and JSON,
// credentials are replaced in place, so that a file still shows its other changes.
func (a *run) text(s string, how manner) any {
	if a.again {
		if _, hidden := diff.Hidden(s); hidden {
			return s
		}
	}
	if v, ok := a.embedded(s, how); ok {
		return v
	}
	if hidesWhole(s) {
		return a.hide(s)
	}
	found := credentials(s, how)
	if len(found) == 0 {
		return s
	}
	if !strings.Contains(s, "\n") {
		return a.hide(s)
	}
	var out strings.Builder
	end := 0
	for _, at := range found {
		out.WriteString(s[end:at.from])
		a.path.push(step{kind: diff.Value, text: at.name})
		marker, _ := a.hide(s[at.from:at.to]).(string)
		a.path.pop()
		out.WriteString(marker)
		end = at.to
	}
	out.WriteString(s[end:])
	a.note(s)
	return out.String()
}

// hidesWhole reports whether a text encodes another one that contains a credential.
func hidesWhole(s string) bool {
	for range maxWithin {
		if len(s) < minCoded {
			return false
		}
		s = strings.Trim(s, "\"' \t\r\n")
		if isZipped(s) {
			return true
		}
		text, ok := decoded(s)
		if !ok {
			return false
		}
		if holdsCredential(text, asText) || mayBeJSON(text) && hidesJSON(text) {
			return true
		}
		s = text
	}
	return false
}

// byteOrderMark may start a file.
const byteOrderMark = "\ufeff"

// mayBeJSON reports whether a text starts like an object, a list, or a text with escapes.
func mayBeJSON(s string) bool {
	s = strings.TrimPrefix(s, byteOrderMark)
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return i+1 < len(s)
		case '"':
			return strings.HasSuffix(s, `"`) && strings.IndexByte(s, '\\') >= 0
		default:
			return false
		}
	}
	return false
}

// embedded redacts a text that consists of JSON values, such as a line each, as objects; false if it does not.
func (a *run) embedded(s string, how manner) (any, bool) {
	if !mayBeJSON(s) {
		return nil, false
	}
	isJSON, hides := scanJSON(a.resource, s, how, a.within)
	switch {
	case !isJSON:
		return nil, false
	case !hides:
		return s, true
	case a.within == maxWithin:
		return a.hide(s), true
	}
	before := a.hidden
	values, ok := a.values(s, how)
	switch {
	case !ok: // a number that no decoder can hold, or too deep
		return a.hide(s), true
	case a.hidden == before:
		if keysOf(values) != keysIn(s) { // a field occurs twice, and values only has its last value
			return a.hide(s), true
		}
		return s, true
	}
	a.note(s)
	lines := len(values) == 1 && strings.Contains(strings.TrimSpace(s), "\n")
	var out []string
	for _, v := range values {
		out = append(out, writeJSON(v, lines))
	}
	return strings.Join(out, "\n"), true
}

// values decodes the JSON values of a text and redacts them.
func (a *run) values(s string, how manner) (values []any, ok bool) {
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(s, byteOrderMark)))
	d.UseNumber()
	a.within++
	defer func() { a.within-- }()
	for i := 0; ; i++ {
		var v any
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return values, true
		case err != nil:
			return nil, false
		}
		if i > 0 {
			a.path.push(step{kind: diff.Index, index: i})
		}
		values = append(values, a.value(v, how))
		if i > 0 {
			a.path.pop()
		}
	}
}

// keysOf counts the fields of a decoded value, keysIn those of its text.
func keysOf(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, child := range v {
			n += keysOf(child)
		}
	case []any:
		for _, child := range v {
			n += keysOf(child)
		}
	}
	return n
}

func keysIn(s string) (n int) {
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(s, byteOrderMark)))
	var open []bool // objects
	key := false    // comes next
	for {
		t, err := d.Token()
		if err != nil {
			return n
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			open = append(open, t == json.Delim('{'))
			key = t == json.Delim('{')
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if key {
				n++
				key = false
				continue
			}
		}
		key = len(open) > 0 && open[len(open)-1]
	}
}

func writeJSON(v any, lines bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if lines {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil { // cannot happen for values decoded from JSON
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// canonical encodes JSON with sorted keys.
func canonical(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // cannot happen for values decoded from JSON; redacted all the same
		return fmt.Append(nil, v)
	}
	return text
}
