// Package jsonmap decodes an object's JSON into a map, several times faster than a general decoder, and reads such maps
// by paths of keys.
//
//   - The result equals that of apimachinery's util/json.Unmarshal: integers are int64 if they fit, other numbers
//     float64; the last value of a repeated key counts; invalid UTF-8 becomes U+FFFD.
//   - Equal keys and equal short strings within an object share one string.
//
// The library's decoder of unstructured objects (informer/internal/decode) shares equal parts among all objects of a
// source. This one serves diffs: two versions share parts by position, which is faster to find than by content; the fields
// in managedFields stay text; and a version knows where its parts are.
package jsonmap

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/internal/jsonscan"
)

// maxDepth is the greatest nesting depth, that of encoding/json.
const maxDepth = jsonscan.MaxDepth

// errSlow says that the general decoder must read the text, or report what is wrong with it.
var errSlow = errors.New("not the usual JSON")

// Decode decodes an object; null is nil.
func Decode(raw []byte) (map[string]any, error) {
	d := decoder{raw: raw}
	if m, ok := d.whole(); ok {
		return m, nil
	}
	return general(raw)
}

// DecodeObject decodes a Kubernetes object, but leaves metadata.managedFields[*].fieldsV1 as a json.RawMessage, which is
// a valid part of raw: it is large and rarely needed. All reports that the map is complete apart from that: it is false
// if a key is repeated, since the map has its last value only, and if the general decoder was used.
func DecodeObject(raw []byte) (m map[string]any, all bool, err error) {
	d := decoder{raw: raw, spare: true}
	if m, ok := d.whole(); ok {
		return m, !d.twice, nil
	}
	m, err = general(raw)
	return m, false, err
}

// general uses the general decoder.
func general(raw []byte) (m map[string]any, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return m, nil
}

// decoder decodes one object. It leaves the rest (numbers that are not integers, syntax errors) to the general decoder.
type decoder struct {
	raw    []byte
	pos    int
	depth  int
	known  [128]string    // interned strings of this object, by hash
	twice  bool           // a key was repeated
	spare  bool           // leave fieldsV1 as text
	texts  int            // number of values left as text
	names  [4]string      // of the fields being read, by depth; empty in an array
	same   map[string]int // fields of the root to leave out, with the lengths of their values
	noted  bool           // record parts
	parts  []part         // in the order of the text
	own    bool           // do not share the metadata
	other  *decoder       // a decoder of a similar object, with parts; may be nil
	shared int            // length of the text of the parts shared with other
	shift  int            // from a position here to that of the last shared part in other
}

// whole decodes the object; false leaves it to the general decoder.
func (d *decoder) whole() (map[string]any, bool) {
	d.space()
	m, err := d.object()
	if err != nil {
		return nil, false
	}
	d.space()
	return m, d.pos == len(d.raw)
}

// space skips white space.
func (d *decoder) space() { d.pos = jsonscan.Space(d.raw, d.pos) }

// next skips white space and returns the next byte; 0 at the end.
func (d *decoder) next() byte {
	if d.pos < len(d.raw) && d.raw[d.pos] > ' ' {
		return d.raw[d.pos]
	}
	d.space()
	if d.pos == len(d.raw) {
		return 0
	}
	return d.raw[d.pos]
}

func (d *decoder) value() (any, error) {
	switch c := d.next(); {
	case c == '"':
		return d.text()
	case c == '{', c == '[':
		return d.part(c)
	case c == '-', jsonscan.IsDigit(c):
		return d.number()
	case c == 't':
		return true, d.literal("true")
	case c == 'f':
		return false, d.literal("false")
	case c == 'n':
		return nil, d.literal("null")
	default:
		return nil, errSlow
	}
}

func (d *decoder) literal(word string) error {
	if !jsonscan.Literal(d.raw, d.pos, word) {
		return errSlow
	}
	d.pos += len(word)
	return nil
}

// object reads an object, at its brace.
func (d *decoder) object() (map[string]any, error) {
	if d.next() != '{' || d.depth == maxDepth {
		return nil, errSlow
	}
	d.pos++
	d.depth++
	m := make(map[string]any)
	if d.next() == '}' {
		d.pos++
		d.depth--
		return m, nil
	}
	for keys := 1; ; keys++ {
		if d.next() != '"' {
			return nil, errSlow
		}
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if d.next() != ':' {
			return nil, errSlow
		}
		d.pos++
		if d.spare && d.depth < len(d.names) {
			d.names[d.depth] = key
		}
		if d.depth == 1 && d.same[key] > 0 {
			d.space()
			d.pos += d.same[key]
			keys--
		} else if key == "fieldsV1" && d.depth == len(d.names) && d.inEntries() && d.next() == '{' {
			d.texts++
			m[key], err = d.skip()
		} else {
			m[key], err = d.value()
		}
		if err != nil {
			return nil, err
		}
		switch d.next() {
		case ',':
			d.pos++
		case '}':
			d.pos++
			d.depth--
			d.twice = d.twice || len(m) < keys
			return m, nil
		default:
			return nil, errSlow
		}
	}
}

// managedFields is decoder.names within an object's managed fields.
var managedFields = [4]string{1: "metadata", 2: "managedFields"}

// inEntries reports, in an array at this depth or below, whether it holds the entries of an object's managed fields.
func (d *decoder) inEntries() bool { return d.spare && d.depth >= 3 && d.names == managedFields }

// array reads an array, at its bracket.
func (d *decoder) array() ([]any, error) {
	if d.depth == maxDepth {
		return nil, errSlow
	}
	d.pos++
	d.depth++
	if d.depth < len(d.names) {
		d.names[d.depth] = ""
	}
	list := make([]any, 0, 4)
	if d.next() == ']' {
		d.pos++
		d.depth--
		return list, nil
	}
	for {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch d.next() {
		case ',':
			d.pos++
		case ']':
			d.pos++
			d.depth--
			return list, nil
		default:
			return nil, errSlow
		}
	}
}

// text reads a string, at its quote.
func (d *decoder) text() (string, error) {
	from := d.pos + 1
	end, form := jsonscan.String(d.raw, from)
	d.pos = end + 1
	b := d.raw[from:end]
	switch {
	case form == jsonscan.Invalid:
		return "", errSlow
	case form == jsonscan.ASCII, form == jsonscan.Plain && utf8.Valid(b):
		return d.intern(b), nil
	}
	return string(jsonscan.Unquote(make([]byte, 0, len(b)+len(b)/8), b)), nil
}

// intern returns a string, reusing a recent equal one if it is short.
func (d *decoder) intern(b []byte) string {
	if len(b) > 32 {
		return string(b)
	}
	h := uint32(len(b))
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	at := &d.known[(h^h>>16)%uint32(len(d.known))]
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}

// number reads an integer; other numbers are rare.
func (d *decoder) number() (any, error) {
	minus := d.raw[d.pos] == '-'
	if minus {
		d.pos++
	}
	from, n := d.pos, int64(0)
	for d.pos < len(d.raw) && jsonscan.IsDigit(d.raw[d.pos]) {
		n = n*10 + int64(d.raw[d.pos]-'0')
		d.pos++
	}
	digits := d.pos - from
	if digits == 0 || digits > 18 || digits > 1 && d.raw[from] == '0' || minus && n == 0 {
		return nil, errSlow
	}
	if c := d.next(); c != ',' && c != '}' && c != ']' {
		return nil, errSlow
	}
	if minus {
		n = -n
	}
	return n, nil
}
