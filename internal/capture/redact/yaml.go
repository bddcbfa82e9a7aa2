package redact

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/diff"
)

// yamlStyle is how a value is written outside of JSON.
type yamlStyle uint8

const (
	inJSONStyle yamlStyle = iota
	plainStyle
	singleStyle
	doubleStyle
	blockStyle
	rawStyle // in XML
)

// templated matches what a template inserts in YAML, and templateLine a line that only controls it.
var (
	templated    = regexp.MustCompile(`\{\{[^{}\n]*\}\}`)
	templateLine = regexp.MustCompile(`(?m)^(?:[ \t]*(?:\{\{[^{}\n]*\}\}|\{%[^{}\n]*%\}))+[ \t]*\r?$`)
)

// hasField reports whether a line may have a field of YAML, as opposed to those of properties and the like.
func hasField(s string) bool {
	for i := 0; i < len(s); i++ {
		n := strings.IndexByte(s[i:], ':')
		if n < 0 {
			return false
		}
		if i += n; (i+1 == len(s) || s[i+1] <= ' ') && !strings.Contains(s[lineBegin(s, i):i], "=") {
			return true
		}
	}
	return false
}

// opened and closed replace the brackets of templates while YAML is read, and joined what would begin a comment in a
// marker. They are as long as those, and letters.
const opened, closed, joined = "\u023e", "\u023f", "\u0240"

var restored = strings.NewReplacer(opened, "{{", closed, "}}", joined, " #")

// written matches a marker in a text.
var written = regexp.MustCompile(diff.HiddenPrefix + `[0-9a-f]{16}`)

// joinMarkers makes each marker in a text one word of the same length.
func joinMarkers(s string) string {
	if !strings.Contains(s, diff.HiddenPrefix) {
		return s
	}
	return written.ReplaceAllStringFunc(s, func(s string) string { return strings.Replace(s, " #", joined, 1) })
}

// onlyMarkers reports whether a text is markers alone: of a value, and of the comment behind it.
func onlyMarkers(s string) bool {
	return strings.HasPrefix(s, diff.HiddenPrefix) && strings.TrimSpace(written.ReplaceAllLiteralString(s, "")) == ""
}

// yamlReader builds a tree of YAML.
type yamlReader struct {
	*tree
	text    string               // with replaced brackets of templates
	lines   []int                // where they start
	anchors map[*yaml.Node]int32 // the values that have one
	leaves  int                  // end of the last value
	near    position             // of the last node
	inside  int                  // number of aliases that are being followed
	failed  bool
}

// position is a place in a text. Columns count characters.
type position struct{ line, column, offset int }

// readYAML reads a text that is a stream of YAML maps, or of lists of maps; false if it is not.
func (t *tree) readYAML() bool {
	if t.source[0] == '<' || !hasField(t.source) {
		return false
	}
	r := yamlReader{tree: t, text: t.source, lines: []int{0}, anchors: map[*yaml.Node]int32{}}
	if strings.Contains(r.text, "{{") || strings.Contains(r.text, "{%") {
		r.text = templateLine.ReplaceAllStringFunc(r.text, func(s string) string { return strings.Repeat(" ", len(s)-1) + "#" })
		r.text = templated.ReplaceAllStringFunc(r.text, func(s string) string { return opened + s[2:len(s)-2] + closed })
	}
	r.text = joinMarkers(r.text)
	for i := range len(r.text) {
		if r.text[i] == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	d := yaml.NewDecoder(strings.NewReader(r.text))
	before := int32(0)
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(doc.Content) != 1 {
			return false
		}
		root := doc.Content[0]
		if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
			continue
		}
		if root.Kind != yaml.MappingNode && (root.Kind != yaml.SequenceNode || len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode) {
			return false
		}
		t.nodes = slices.Grow(t.nodes, size(root))
		i := r.add(root, "")
		if r.failed {
			return false
		}
		if before != 0 {
			t.at(before).next = i
		}
		before = i
	}
	if before != 0 {
		r.gap(len(r.text))
	}
	return before != 0
}

// size returns the number of a node and those below it.
func size(y *yaml.Node) int {
	n := 1
	for _, c := range y.Content {
		n += size(c)
	}
	return n
}

// add adds a node and all below it.
func (r *yamlReader) add(y *yaml.Node, key string) int32 {
	i := int32(len(r.tree.nodes))
	r.tree.nodes = append(r.tree.nodes, node{key: key})
	n := node{key: key, from: r.offset(y.Line, y.Column), style: plainStyle}
	n.to = n.from
	switch y.Kind {
	case yaml.AliasNode: // its value is redacted where it is defined
		n.kind = 'n'
		if was, ok := r.anchors[y.Alias]; ok && y.Alias.Kind == yaml.ScalarNode {
			n = *r.at(was)
			n.key, n.next = key, 0
		} else if y.Alias.Kind != yaml.ScalarNode && r.inside < maxAliases {
			r.inside++
			i = r.add(y.Alias, key)
			r.inside--
			return i
		}
	case yaml.ScalarNode:
		r.scalar(y, &n)
		if y.Anchor != "" {
			r.anchors[y] = i
		}
	default:
		n.kind = '['
		step := 1
		if y.Kind == yaml.MappingNode {
			n.kind, step = '{', 2
		}
		before := int32(0)
		link := func(c int32) {
			if before == 0 {
				n.child = c
			} else {
				r.at(before).next = c
			}
			if before, n.to = c, max(n.to, r.at(c).to); len(r.tree.nodes) > maxNodes {
				r.failed = true
			}
		}
		for at := step - 1; at < len(y.Content) && !r.failed; at += step {
			name := ""
			if step == 2 {
				name = restored.Replace(y.Content[at-1].Value)
				if y.Content[at-1].Kind != yaml.ScalarNode {
					r.failed = true
				}
			}
			c := r.add(y.Content[at], name)
			if step == 2 && y.Content[at-1].Tag == "!!merge" {
				r.merge(c, link)
				continue
			}
			link(c)
		}
	}
	*r.at(i) = n
	return i
}

// merge links the fields of a map, or of the maps of a list, that another one merges.
func (r *yamlReader) merge(i int32, link func(int32)) {
	for c := r.at(i).child; c != 0; {
		next := r.at(c).next
		if r.at(c).next = 0; r.at(i).kind == '[' {
			r.merge(c, link)
		} else {
			link(c)
		}
		c = next
	}
}

// maxAliases bounds the depth of aliases in what aliases stand for.
const maxAliases = 3

// maxNodes bounds the values of a text that is read as YAML.
const maxNodes = 1 << 18

// offset returns the offset of a line and a column. It continues from the last one, so that a long line is read once.
func (r *yamlReader) offset(line, column int) int {
	if line < 1 || line > len(r.lines) {
		r.failed = true
		return 0
	}
	if line != r.near.line || column < r.near.column {
		r.near = position{line, 1, r.lines[line-1]}
	}
	for ; r.near.column < column; r.near.column++ {
		_, n := utf8.DecodeRuneInString(r.text[r.near.offset:])
		r.near.offset += n
		cost(n)
	}
	return r.near.offset
}

// scalar finds where a scalar is written. Its position may be that of an anchor or a tag before it.
func (r *yamlReader) scalar(y *yaml.Node, n *node) {
	n.kind, n.text = '"', restored.Replace(y.Value)
	switch y.Tag {
	case "!!null":
		n.kind = 'n'
	case "!!int", "!!float":
		n.kind = '0'
	case "!!bool":
		n.kind = 't'
		if strings.EqualFold(y.Value, "false") {
			n.kind = 'f'
		}
	}
	at := n.from
	for at < len(r.text) && (r.text[at] == '&' || r.text[at] == '!') && y.Value != "" {
		if end := strings.IndexAny(r.text[at:], " \t\r\n"); end >= 0 {
			at = r.skip(at + end)
		} else {
			at = len(r.text)
		}
	}
	n.from, n.to = at, at
	switch {
	case y.Value == "" && y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0:
		return
	case y.Style&yaml.DoubleQuotedStyle != 0:
		n.style = doubleStyle
		n.to = inDelimiters(r.text, at, at+1).to + 1
	case y.Style&yaml.SingleQuotedStyle != 0:
		n.style = singleStyle
		n.to = inDelimiters(r.text, at, at+1).to + 1
	default:
		begin := at
		if y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			n.style = blockStyle
			begin = lineEnd(r.text, at)
		}
		n.to = r.words(begin, y.Value)
	}
	if n.to > len(r.text) {
		r.failed = true
		return
	}
	if r.inside > 0 {
		return
	}
	r.gap(n.from)
	if r.leaves = n.to; y.Style&yaml.FoldedStyle != 0 && strings.Contains(y.Value, ": ") { // perhaps it was meant to have lines
		r.gaps = append(r.gaps, span{from: n.from, to: n.to})
	}
}

// skip skips white space and comments.
func (r *yamlReader) skip(at int) int {
	for at < len(r.text) {
		switch r.text[at] {
		case ' ', '\t', '\r', '\n':
			at++
		case '#':
			at = lineEnd(r.text, at)
		default:
			return at
		}
	}
	return at
}

// words returns the end of a value whose words begin at a position.
func (r *yamlReader) words(at int, value string) int {
	for word := range strings.FieldsSeq(value) {
		at += len(r.text[at:]) - len(strings.TrimLeftFunc(r.text[at:], unicode.IsSpace))
		if !strings.HasPrefix(r.text[at:], word) {
			r.failed = true
			return at
		}
		at += len(word)
	}
	return at
}

// gap notes the part before a value if it has a comment, or a name that may hold a credential.
func (r *yamlReader) gap(to int) {
	if r.leaves < to && (strings.ContainsAny(r.text[r.leaves:to], "#=") || hasTightColon(r.text[r.leaves:to])) {
		r.gaps = append(r.gaps, span{from: r.leaves, to: to})
	}
}

// entities writes a text as XML.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")

// replace replaces a value by a text, in the style in which it is written.
func (t *tree) replace(n *node, s string) {
	switch {
	case n.style == inJSONStyle, n.style == doubleStyle, n.style == plainStyle && strings.Contains(s, "\n"):
		n.made = quoted(s)
	case n.style == rawStyle && strings.HasPrefix(t.source[n.from:n.to], "<![CDATA[") && !strings.Contains(s, "]]>"):
		n.made = "<![CDATA[" + s + "]]>"
	case n.style == rawStyle:
		n.made = entities.Replace(s)
	case n.style == singleStyle:
		n.made = "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case n.style == blockStyle && strings.Contains(s, "\n"):
		source := t.source[n.from:n.to]
		head := lineEnd(source, 0)
		first := strings.TrimLeft(source[head:], "\r\n")
		indent := first[:indentation(first, 0)]
		var made strings.Builder
		made.WriteString(source[:head])
		for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
			made.WriteByte('\n')
			if line != "" {
				made.WriteString(indent)
				made.WriteString(line)
			}
		}
		n.made = made.String()
	default:
		n.made = s
	}
}

// hasTightColon reports whether a colon has no space behind it.
func hasTightColon(s string) bool {
	for {
		i := strings.IndexByte(s, ':')
		if i < 0 || i+1 == len(s) {
			return false
		}
		if s = s[i+1:]; s[0] > ' ' {
			return true
		}
	}
}
