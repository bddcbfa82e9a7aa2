// Package jsonmap decodes the JSON of an object into a map, several times faster than a decoder of any
// type does.
//
//   - The result is what apimachinery's util/json.Unmarshal makes: integers are int64 where they fit,
//     other numbers float64; of a key that comes twice the last value counts; bytes that are no UTF-8
//     become U+FFFD.
//   - Keys and short strings that recur in an object are one string in memory.
//
// The library's decoder of unstructured objects (informer/internal/decode) lets all objects of a source share what they
// have in common. This one serves differences: two versions share by position, which is quicker to find than by content;
// what managed fields say stays text; and a version tells where its parts are.
package jsonmap

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/internal/jsonscan"
)

// maxDepth bounds the nesting of values, as in encoding/json.
const maxDepth = jsonscan.MaxDepth

// errSlow is for what the general decoder reads, or says what is wrong with it.
var errSlow = errors.New("not the usual JSON")

// Decode decodes an object; null is nil.
func Decode(raw []byte) (map[string]any, error) {
	d := decoder{raw: raw}
	if m, ok := d.whole(); ok {
		return m, nil
	}
	return general(raw)
}

// DecodeObject decodes an object of Kubernetes, but leaves as text what its managed fields say of fields,
// which is much and seldom asked for: metadata.managedFields[*].fieldsV1 may be a json.RawMessage, which
// is a part of raw, and valid. All tells whether the map has the rest of what the text says: false
// where a key comes twice, of which the map has the last value only, or where nobody looked.
func DecodeObject(raw []byte) (m map[string]any, all bool, err error) {
	d := decoder{raw: raw, spare: true}
	if m, ok := d.whole(); ok {
		return m, !d.twice, nil
	}
	m, err = general(raw)
	return m, false, err
}

// general decodes what decoder does not.
func general(raw []byte) (m map[string]any, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return m, nil
}

// decoder reads one object. It leaves what it does not read (numbers that are not integers, syntax errors) to the
// general decoder.
type decoder struct {
	raw    []byte
	pos    int
	depth  int
	known  [128]string    // strings of this object, by a hash
	twice  bool           // a key came twice
	spare  bool           // what DecodeObject leaves as text
	texts  int            // so many values were left so
	names  [4]string      // of the fields that are being read, by depth; empty in an array
	same   map[string]int // fields of the root that are left out, and how long their values are
	noted  bool           // parts are
	parts  []part         // by where they begin
	own    bool           // the metadata is shared with no other version
	other  *decoder       // which has noted the parts of an object that is much the same; nil: there is none
	shared int            // so long is the text of the parts that are those of the other
	shift  int            // from here to the part of the other that was the same last
}

// whole reads the object; false where that is left to the general decoder.
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

// next passes over white space and returns the next byte; 0 at the end.
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

// managedFields is where an object has its managed fields, as decoder.names has it.
var managedFields = [4]string{1: "metadata", 2: "managedFields"}

// inEntries tells, in an array at this depth or below, that it has the entries of an object's managed
// fields.
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

// intern returns a string, the one that was made last of the same short text.
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

// number reads an integer; others are rare.
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
