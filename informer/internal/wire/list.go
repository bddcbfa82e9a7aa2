package wire

import (
	"encoding/json"
	"io"
	"strings"
)

// List cuts the body of a list into its items. Metadata may come before the items (typed lists) or
// behind them (custom resources: their keys are sorted).
type List struct {
	s          scanner
	at         place
	first      bool // no element was read yet at this place
	items      bool // the field "items" was read
	apiVersion string
	kind       string
	meta       ListMeta
}

// ListMeta is the metadata of a list.
type ListMeta struct {
	ResourceVersion string
	// Continue asks for the next page; empty on the last one.
	Continue string
}

// place is where in the body the reader stands.
type place int

const (
	atStart place = iota
	atFields
	atItems
	atEnd
)

// NewList reads a list from body, which stays the caller's to close.
func NewList(body io.Reader) *List { return &List{s: newScanner(body)} }

// Meta is the list's metadata: complete once Next has returned io.EOF, and as far as it was read
// before.
func (l *List) Meta() ListMeta { return l.meta }

// Next returns the next item, or io.EOF behind the last one. After an *ObjectError the next call
// goes on behind the bad item; any other error is final.
func (l *List) Next() (Object, error) {
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

// field reads one field of the list, up to the first item where it is "items".
func (l *List) field() error {
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

func (l *List) openItems() error {
	if l.items {
		return l.s.syntax("items twice")
	}
	l.items = true
	c, err := l.s.must()
	if err != nil {
		return err
	}
	if c == 'n' { // what Go's encoder makes of an empty typed list
		return l.s.literal("null")
	}
	if err := l.s.expect('['); err != nil {
		return err
	}
	l.at, l.first = atItems, true
	return nil
}

func (l *List) item() (Object, error) {
	if _, err := l.s.must(); err != nil {
		return Object{}, err
	}
	l.s.keep()
	m, bad, err := l.s.object()
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
	kind, isList := strings.CutSuffix(l.kind, "List")
	if !m.Typed && isList && kind != "" && l.apiVersion != "" {
		m.Typed = true
		raw = WithType(raw, l.apiVersion, kind)
	}
	return Object{Meta: m, Raw: raw}, nil
}

// metadata reads the list's own metadata, which is small.
func (l *List) metadata() error {
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

// finish checks that the body held a list and nothing behind it.
func (l *List) finish() error {
	if !l.items && !strings.HasSuffix(l.kind, "List") {
		return l.s.syntax("no list: kind " + quote(l.kind))
	}
	if _, err := l.s.token(); err != nil {
		return err // io.EOF is what should come
	}
	return l.s.syntax("bytes behind the list")
}

func quote(v string) string { return string(appendQuoted(nil, v)) }

func appendQuoted(to []byte, v string) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a string always marshals
	}
	return append(to, b...)
}
