package redact

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// readXML reads a text that is XML; false if it is not. An attribute is a field of its element. A text without
// attributes or other elements beside it is the element's value, and otherwise a field: value if the element has a
// name or a key, else with the element's own name.
func (t *tree) readXML() bool {
	if !strings.HasPrefix(strings.TrimLeft(t.source, " \t\r\n"), "<") {
		return false
	}
	d := xml.NewDecoder(strings.NewReader(t.source))
	d.Strict = false // also reads unknown entities, and an & alone
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	t.nodes = append(t.nodes, node{kind: '{', to: len(t.source)})
	open, last := []int32{1}, []int32{0} // elements, and the last child of each
	named := []bool{false}               // whether an element has a name or a key, for its text
	add := func(n node) int32 {
		n.style, n.begin = rawStyle, n.from
		i := int32(len(t.nodes))
		t.nodes = append(t.nodes, n)
		if depth := len(open) - 1; last[depth] == 0 {
			t.at(open[depth]).child = i
		} else {
			t.at(last[depth]).next = i
		}
		last[len(open)-1] = i
		named[len(open)-1] = named[len(open)-1] || names(&n)
		return i
	}
	for {
		from := int(d.InputOffset())
		token, err := d.RawToken()
		to := int(d.InputOffset())
		switch {
		case errors.Is(err, io.EOF):
			return len(open) == 1 && len(t.nodes) > 2
		case err != nil:
			return false
		}
		switch token := token.(type) {
		case xml.StartElement:
			i := add(node{key: token.Name.Local, kind: '{', from: from, to: to})
			open, last, named = append(open, i), append(last, 0), append(named, false)
			at := from
			for _, attr := range token.Attr {
				n := attribute(t.source[:to], at, attr)
				if n.to == 0 {
					return false
				}
				add(n)
				at = n.to
			}
		case xml.EndElement:
			depth := len(open) - 1
			if depth == 0 {
				return false
			}
			n := t.at(open[depth])
			if n.to = to; n.child == last[depth] && n.child != 0 && t.at(n.child).key == n.key && t.at(n.child).kind == '"' { // only a text
				only := *t.at(n.child)
				only.next = n.next
				*n = only
			}
			open, last, named = open[:depth], last[:depth], named[:depth]
			named[depth-1] = named[depth-1] || names(n)
		case xml.CharData:
			text := strings.TrimSpace(string(token))
			if text == "" {
				continue
			}
			from += len(t.source[from:to]) - len(strings.TrimLeft(t.source[from:to], " \t\r\n"))
			to = from + len(strings.TrimRight(t.source[from:to], " \t\r\n"))
			key := t.at(open[len(open)-1]).key
			if named[len(open)-1] { // <entry key="password">x</entry>
				key = "value"
			}
			add(node{key: key, kind: '"', text: text, from: from, to: to})
		case xml.Comment: // <!-- -->
			t.gaps = append(t.gaps, span{from: from + 4, to: to - 3})
		case xml.ProcInst: // <? ?>
			t.gaps = append(t.gaps, span{from: from + 2, to: to - 2})
		case xml.Directive: // <! >
			t.gaps = append(t.gaps, span{from: from + 2, to: to - 1})
		}
	}
}

// names reports whether a node names the text beside it.
func names(n *node) bool {
	return n.kind == '"' && n.text != "" && (n.key == "name" || n.key == "key")
}

// attribute finds an attribute's value, in its quotes, at or after a position.
func attribute(source string, at int, attr xml.Attr) node {
	i := strings.Index(source[at:], attr.Name.Local)
	if i < 0 {
		return node{}
	}
	from := at + i + len(attr.Name.Local)
	quote := strings.IndexAny(source[from:], `"'`)
	if quote < 0 {
		return node{}
	}
	if from += quote; strings.Trim(source[from-quote:from], " \t\r\n=") != "" { // without quotes
		return node{}
	}
	n := strings.IndexByte(source[from+1:], source[from])
	if n < 0 {
		return node{}
	}
	return node{key: attr.Name.Local, kind: '"', text: attr.Value, from: from + 1, to: from + 1 + n}
}
