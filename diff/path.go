package diff

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Path is a place in an object; docs/paths.md defines its text. The empty Path is the object itself.
type Path []Elem

// Elem is a step of a path. Exactly one of its forms is set, as Kind says.
type Elem struct {
	Kind ElemKind
	// Name is the map key of a Field.
	Name string
	// Index is the position of an Index: for Remove in the old list, for Add in the new list; otherwise it is the same in
	// both.
	Index int
	// Keys are the merge keys of a Keyed list element, in their declared order.
	Keys []KeyValue
	// Value is the scalar of a set list's element.
	Value any
}

// ElemKind is the form of an Elem.
type ElemKind uint8

// The forms of a step.
const (
	Field ElemKind = iota
	Index
	Keyed
	Value
)

// KeyValue is one merge key of a list element and its value, a scalar.
type KeyValue struct {
	Name  string
	Value any
}

// String returns the path's text, such as spec.ports[port=80,protocol=TCP].nodePort. ParsePath parses it back. The text has
// no control characters, whatever the keys are.
func (p Path) String() string {
	var b []byte
	for i, e := range p {
		b = e.AppendText(b, i == 0)
	}
	return string(b)
}

// AppendText appends the step's text as in Path.String; first says that it is the first step.
func (e Elem) AppendText(b []byte, first bool) []byte {
	switch e.Kind {
	case Field:
		switch {
		case !isBare(e.Name, nameMarks):
			return append(strconv.AppendQuote(append(b, '['), e.Name), ']')
		case !first:
			b = append(b, '.')
		}
		return append(b, e.Name...)
	case Index:
		return append(strconv.AppendInt(append(b, '['), int64(e.Index), 10), ']')
	case Keyed:
		for i, k := range e.Keys {
			if i == 0 {
				b = append(b, '[')
			} else {
				b = append(b, ',')
			}
			b = append(b, quoteUnlessBare(k.Name, nameMarks)...)
			b = append(append(b, '='), pathScalar(k.Value)...)
		}
		return append(b, ']')
	case Value:
		return append(append(append(b, "[="...), pathScalar(e.Value)...), ']')
	}
	return b
}

// Equal compares step by step; numbers are equal by value, whatever their Go type.
func (p Path) Equal(q Path) bool { return slices.EqualFunc(p, q, Elem.equal) }

func (e Elem) equal(f Elem) bool {
	return e.Kind == f.Kind && e.Name == f.Name && e.Index == f.Index && Equal(e.Value, f.Value) &&
		slices.EqualFunc(e.Keys, f.Keys, func(a, b KeyValue) bool {
			return a.Name == b.Name && Equal(a.Value, b.Value)
		})
}

// These characters, and ASCII letters and digits, need no quotes. The parser accepts more; the printer is strict so that a path
// survives shells, flags and YAML.
const (
	nameMarks  = "_-$"
	valueMarks = "_-$./:@+"
)

func isBare(s, marks string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(marks, r))
	}) < 0
}

func quoteUnlessBare(s, marks string) string {
	if isBare(s, marks) {
		return s
	}
	return strconv.Quote(s)
}

// pathScalar formats a key's value: a string is quoted if it would parse as another type.
func pathScalar(v any) string {
	s, ok := v.(string)
	if !ok {
		return scalarText(v)
	}
	if _, ok := bareScalar(s).(string); !ok {
		return strconv.Quote(s)
	}
	return quoteUnlessBare(s, valueMarks)
}

// bareScalar parses an unquoted value: null, a boolean, a JSON number, or else a string.
func bareScalar(s string) any {
	switch s {
	case "null":
		return nil
	case "true":
		return true
	case "false":
		return false
	case "":
		return ""
	}
	if (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s)) {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	}
	return s
}
