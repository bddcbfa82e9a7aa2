package redact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/internal/jsonscan"
)

// node is a value of a document: of an object's JSON, or of a text in JSON, YAML or XML. All of them are redacted by
// the same rules (run.value).
type node struct {
	kind     byte   // the first byte of its JSON: { [ " 0 t f n
	key      string // of a field
	text     string // of a text, decoded, and of a number
	made     string // replaces the source from from to to, if not empty
	begin    int    // of the field's name in the source; of the value in a list
	from, to int    // the value in the source
	child    int32  // the first one in tree.nodes; 0 without one
	next     int32  // the next sibling
	gone     bool   // the field is left out
	style    yamlStyle
	facts    facts // of the field's name; see run.object
}

// tree is a document. Its first node is unused, and its second the root; further roots are siblings.
type tree struct {
	nodes  []node
	source string
	raw    []byte // source
	pos    int
	values []byte // of strings with escapes
	gaps   []span // between values, with comments; see run.comments
	extra  []part // to replace there
}

// root returns the first root.
func (t *tree) root() int32 { return min(1, int32(len(t.nodes)-1)) }

var trees = sync.Pool{New: func() any { return &tree{nodes: make([]node, 1, 512)} }}

// maxKept bounds the nodes of a tree that is kept for reuse.
const maxKept = 1 << 14

func newTree(source string, raw []byte) *tree {
	t, _ := trees.Get().(*tree)
	t.source, t.raw, t.pos = source, raw, 0
	cost(len(source))
	return t
}

// free lets the tree be used again. Texts that were taken from it stay valid.
func (t *tree) free() {
	if cap(t.nodes) > maxKept {
		return
	}
	clear(t.nodes)
	*t = tree{nodes: t.nodes[:1], values: t.values[:0]}
	trees.Put(t)
}

func (t *tree) at(i int32) *node { return &t.nodes[i] }

// field returns the first field of that name, or nil.
func (t *tree) field(n *node, key string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for i := n.child; i != 0; i = t.at(i).next {
		if cost(1); t.at(i).key == key {
			return t.at(i)
		}
	}
	return nil
}

// textOf returns the text of a field, or empty.
func (t *tree) textOf(n *node, key string) string {
	if f := t.field(n, key); f != nil && f.kind == '"' {
		return f.text
	}
	return ""
}

// readJSON reads all JSON values of the source; false if it has anything else.
func (t *tree) readJSON() bool {
	before := int32(0)
	for t.space() != 0 || t.pos < len(t.raw) {
		i, ok := t.value(0)
		if !ok {
			return false
		}
		if before != 0 {
			t.at(before).next = i
		}
		before = i
	}
	return before != 0
}

func (t *tree) space() byte {
	if t.pos = jsonscan.Space(t.raw, t.pos); t.pos < len(t.raw) {
		return t.raw[t.pos]
	}
	return 0
}

func (t *tree) take(c byte) bool {
	if t.space() != c {
		return false
	}
	t.pos++
	return true
}

// value reads a value and returns its node.
func (t *tree) value(depth int) (at int32, ok bool) {
	c := t.space()
	at = int32(len(t.nodes))
	t.nodes = append(t.nodes, node{kind: c, begin: t.pos, from: t.pos})
	text := ""
	switch c {
	case '{', '[':
		if depth == jsonscan.MaxDepth || !t.children(at, c+2, depth+1) { // the closing bracket is two after the opening one
			return 0, false
		}
	case '"':
		if text, ok = t.str(); !ok {
			return 0, false
		}
	default:
		from := t.pos
		if t.pos = jsonscan.Value(t.raw, from, 1); t.pos < 0 {
			return 0, false
		}
		if strings.IndexByte("tfn", c) < 0 {
			text, t.at(at).kind = t.source[from:t.pos], '0'
		}
	}
	n := t.at(at)
	n.text, n.to = text, t.pos
	return at, true
}

// children reads the fields of an object or the elements of a list.
func (t *tree) children(parent int32, end byte, depth int) bool {
	t.pos++
	before := int32(0)
	for !t.take(end) {
		if before != 0 && !t.take(',') {
			return false
		}
		key, begin := "", t.pos
		if end == '}' {
			if t.space() != '"' {
				return false
			}
			begin = t.pos
			var ok bool
			if key, ok = t.str(); !ok || !t.take(':') {
				return false
			}
		}
		i, ok := t.value(depth)
		if !ok {
			return false
		}
		if t.at(i).key = key; end == '}' {
			t.at(i).begin = begin
		}
		if before == 0 {
			t.at(parent).child = i
		} else {
			t.at(before).next = i
		}
		before = i
	}
	return true
}

// str reads and decodes a string; false if it is invalid.
func (t *tree) str() (string, bool) {
	from := t.pos + 1
	end, form := jsonscan.String(t.raw, from)
	t.pos = end + 1
	switch {
	case form == jsonscan.Invalid:
		return "", false
	case form == jsonscan.ASCII, form == jsonscan.Plain && utf8.Valid(t.raw[from:end]):
		return t.source[from:end], true
	}
	t.values = jsonscan.Unquote(t.values[:0], t.raw[from:end])
	return string(t.values), true
}

// write returns the source with all replacements.
func (t *tree) write() string {
	var out strings.Builder
	out.Grow(len(t.source))
	end := 0
	replace := func(from, to int, by string) {
		if from >= end { // an alias in YAML may be replaced where it was defined
			out.WriteString(t.source[end:from])
			out.WriteString(by)
			end = to
		}
	}
	parts := t.changed(1, t.extra)
	byPlace := func(a, b part) int { return a.from - b.from }
	if !slices.IsSortedFunc(parts, byPlace) {
		slices.SortStableFunc(parts, byPlace)
	}
	for _, p := range parts {
		replace(p.from, p.to, p.by)
	}
	out.WriteString(t.source[end:])
	return out.String()
}

// part is a part of a source to replace.
type part struct {
	from, to int
	by       string
}

// changed collects the parts to replace in a node and its siblings.
func (t *tree) changed(i int32, parts []part) []part {
	for before := int32(0); i != 0; before, i = i, t.at(i).next {
		n := t.at(i)
		switch {
		case n.gone && before != 0:
			parts = append(parts, part{t.at(before).to, n.to, ""})
		case n.gone && n.next != 0:
			parts = append(parts, part{n.begin, t.at(n.next).begin, ""})
		case n.gone:
			parts = append(parts, part{n.begin, n.to, ""})
		case n.made != "":
			parts = append(parts, part{n.from, n.to, n.made})
		case n.child != 0:
			parts = t.changed(n.child, parts)
		}
	}
	return parts
}

// apply makes the same replacements in a decoded value.
func (t *tree) apply(n *node, v any) any {
	switch {
	case n.made != "":
		return string(jsonscan.Unquote(nil, []byte(n.made[1:len(n.made)-1])))
	case n.kind == '{':
		m, _ := v.(map[string]any)
		if m == nil { // redacted by a user's rule
			return v
		}
		for i := n.child; i != 0; i = t.at(i).next {
			if f := t.at(i); f.gone {
				delete(m, f.key)
			} else if f.made != "" || f.child != 0 {
				m[f.key] = t.apply(f, m[f.key])
			}
		}
	case n.kind == '[':
		list, _ := v.([]any)
		for i, at := 0, n.child; at != 0 && i < len(list); i, at = i+1, t.at(at).next {
			list[i] = t.apply(t.at(at), list[i])
		}
	}
	return v
}

// quoted writes a text as JSON.
func quoted(s string) string {
	b := append(make([]byte, 0, len(s)+len(s)/16+2), '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = fmt.Appendf(b, `\u%04x`, c)
		}
	}
	return string(append(append(b, s[from:]...), '"'))
}

// canonical encodes a node as JSON with sorted keys.
func (t *tree) canonical(n *node) []byte {
	var v any
	if n.style != inJSONStyle && n.kind == '0' { // with all digits
		return []byte(n.text)
	}
	if err := json.Unmarshal([]byte(t.source[n.from:n.to]), &v); err != nil { // not JSON: its source
		return []byte(t.source[n.from:n.to])
	}
	return canonical(v)
}
