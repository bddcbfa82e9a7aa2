package wire

import (
	"encoding/json"
	"io"
	"strings"
)

// jsonList cuts the body of a JSON list into its items. Metadata may come before the items (typed lists) or
// after them (custom resources, whose keys are sorted).
type jsonList struct {
	s          scanner
	at         jsonPlace
	first      bool // no element was read at this place yet
	items      bool // the field "items" was read
	apiVersion string
	kind       string
	meta       ListMeta
	namespace  string // of the last item
	head       []byte // prefix that adds the type to an item: {"kind":…,"apiVersion":…, or empty
	typed      []byte // the last item that received it
}

// jsonPlace is the reader's position in the body.
type jsonPlace int

const (
	atStart jsonPlace = iota
	atFields
	atItems
	atEnd
)

func newJSONList(body io.Reader) *jsonList { return &jsonList{s: newScanner(body, listWindow)} }

// Meta implements List.
func (l *jsonList) Meta() ListMeta { return l.meta }

// Kind implements List.
func (l *jsonList) Kind() (apiVersion, kind string) { return l.apiVersion, l.kind }

// Next implements List.
func (l *jsonList) Next() (Object, error) {
	for {
		var err error
		switch l.at {
		case atStart:
			err = l.s.expect('{')
			l.at, l.first = atFields, true
		case atFields:
			err = l.field()
		case atItems:
			more, err := l.s.elem(l.first, ']')
			if err != nil {
				return Object{}, err
			}
			if more {
				l.first = false
				return l.item()
			}
			l.at, l.first = atFields, false
		case atEnd:
			return Object{}, l.finish()
		}
		if err != nil {
			return Object{}, err
		}
	}
}

// field reads one field of the list. At "items" it stops before the first item.
func (l *jsonList) field() error {
	more, err := l.s.elem(l.first, '}')
	if err != nil {
		return err
	}
	l.first = false
	if !more {
		l.at = atEnd
		return nil
	}
	key, err := l.s.key()
	if err != nil {
		return err
	}
	switch string(key) {
	case "items":
		return l.openItems()
	case "apiVersion":
		l.apiVersion, _, err = l.s.text()
	case "kind":
		l.kind, _, err = l.s.text()
	case "metadata":
		err = l.metadata()
	default:
		err = l.s.value()
	}
	return err
}

func (l *jsonList) openItems() error {
	if l.items {
		return l.s.syntax("items twice")
	}
	l.items = true
	c, err := l.s.must()
	if err != nil {
		return err
	}
	if c == 'n' { // Go's encoding of an empty typed list
		return l.s.literal("null")
	}
	if err := l.s.expect('['); err != nil {
		return err
	}
	l.at, l.first = atItems, true
	kind, isList := strings.CutSuffix(l.kind, "List")
	if isList && kind != "" && l.apiVersion != "" {
		l.head = appendQuoted([]byte(`{"kind":`), kind)
		l.head = appendQuoted(append(l.head, `,"apiVersion":`...), l.apiVersion)
		l.head = append(l.head, ',')
	}
	return nil
}

func (l *jsonList) item() (Object, error) {
	if _, err := l.s.must(); err != nil {
		return Object{}, err
	}
	l.s.keep()
	m, bad, err := l.s.object(l.namespace)
	if err != nil {
		return Object{}, err
	}
	raw := l.s.release()
	if bad == "" && m.Name == "" {
		bad = "an item without metadata.name"
	}
	if bad != "" {
		return Object{Meta: m}, &ObjectError{Msg: bad}
	}
	l.namespace = m.Namespace
	if !m.Typed && l.head != nil {
		// As in a watch, so that the bytes from a list and from a watch are comparable.
		l.typed = append(append(l.typed[:0], l.head...), raw[1:]...)
		m.Typed = true
		return Object{Meta: m, Format: JSON, Raw: l.typed, TypeFromList: true}, nil
	}
	return Object{Meta: m, Format: JSON, Raw: raw}, nil
}

// metadata reads the list's metadata, which is small.
func (l *jsonList) metadata() error {
	if _, err := l.s.must(); err != nil {
		return err
	}
	l.s.keep()
	if err := l.s.value(); err != nil {
		return err
	}
	var m struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	}
	if err := json.Unmarshal(l.s.release(), &m); err != nil {
		return l.s.syntax("metadata of the list: " + err.Error())
	}
	l.meta = ListMeta(m)
	return nil
}

// finish checks that the body held a list and nothing after it.
func (l *jsonList) finish() error {
	if !l.items && !strings.HasSuffix(l.kind, "List") {
		return l.s.syntax("not a list: kind " + quote(l.kind))
	}
	if _, err := l.s.token(); err != nil {
		return err // io.EOF is expected
	}
	return l.s.syntax("bytes after the list")
}

func quote(v string) string { return string(appendQuoted(nil, v)) }

func appendQuoted(to []byte, v string) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a string always marshals
	}
	return append(to, b...)
}
