// Package wire cuts what a Kubernetes API server sends into objects, without decoding them.
//
// A list body and a watch stream are read through a window that holds one object, never the whole;
// a shallow walk reads an object's key, UID and version on the way. JSON only.
//
//   - The bytes of an Object are valid until the next call of Next.
//   - Syntax is checked throughout, so that what is stored can be decoded later. Invalid UTF-8 is
//     passed on, as encoding/json would accept it.
//   - Of a field that occurs twice the last one counts, as in encoding/json.
package wire

import (
	"errors"
	"fmt"
)

// Meta is what the shallow walk reads of an object's metadata.
type Meta struct {
	Namespace, Name, UID, ResourceVersion string
	// Typed is true where the object names its apiVersion and kind. The items of a typed list do
	// not.
	Typed bool
}

// Object is one object, cut out.
type Object struct {
	Meta
	// Raw is the object's JSON: valid until the next call of Next, and not to be written to.
	Raw []byte
}

// SyntaxError says that the input is not the JSON it should be. Where the next object begins is
// unknown after it.
type SyntaxError struct {
	Offset int64 // in bytes, of the body
	Msg    string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("read JSON: byte %d: %s", e.Offset, e.Msg)
}

// TooLargeError says that an object exceeds the limit.
type TooLargeError struct{ Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("read object: larger than %d bytes", e.Limit)
}

// ObjectError says that a value is well-formed but no object that can be kept. Reading may go on
// behind it.
type ObjectError struct{ Msg string }

func (e *ObjectError) Error() string { return "read object: " + e.Msg }

// Unreadable tells whether err blames the bytes that the server sent, rather than the connection.
// Bytes that end early are the connection's fault.
func Unreadable(err error) bool {
	var syntax *SyntaxError
	var large *TooLargeError
	var object *ObjectError
	return errors.As(err, &syntax) || errors.As(err, &large) || errors.As(err, &object)
}

// ReadMeta walks one object.
func ReadMeta(raw []byte) (Meta, error) {
	s := scanner{buf: raw, hold: true, limit: MaxObject}
	m, bad, err := s.object()
	if err != nil {
		return Meta{}, err
	}
	if bad != "" {
		return Meta{}, &ObjectError{Msg: bad}
	}
	return m, nil
}

// WithType returns the object's JSON with its apiVersion and kind added in front, in the order in
// which a watch sends them, so that the bytes of a list and of a watch are comparable.
func WithType(raw []byte, apiVersion, kind string) []byte {
	open := 0
	for raw[open] != '{' {
		open++
	}
	rest := raw[open+1:]
	out := make([]byte, 0, len(rest)+len(apiVersion)+len(kind)+32)
	out = append(out, `{"kind":`...)
	out = appendQuoted(out, kind)
	out = append(out, `,"apiVersion":`...)
	out = appendQuoted(out, apiVersion)
	s := scanner{buf: rest, limit: MaxObject}
	if c, err := s.token(); err == nil && c != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// object reads the object at pos. Where it is well-formed but not readable, bad says why.
func (s *scanner) object() (m Meta, bad string, err error) {
	c, err := s.must()
	if err != nil {
		return m, "", err
	}
	if c != '{' {
		return m, "not an object", s.value()
	}
	s.pos++
	var apiVersion, kind string
	for first := true; ; first = false {
		more, err := s.elem(first, '}')
		if err != nil {
			return m, "", err
		}
		if !more {
			m.Typed = apiVersion != "" && kind != ""
			return m, bad, nil
		}
		key, err := s.key()
		if err != nil {
			return m, "", err
		}
		switch string(key) {
		case "metadata":
			bad, err = s.metadata(&m)
		case "apiVersion":
			apiVersion, _, err = s.text()
		case "kind":
			kind, _, err = s.text()
		default:
			err = s.value()
		}
		if err != nil {
			return m, "", err
		}
	}
}

// metadata reads the value of the field "metadata".
func (s *scanner) metadata(m *Meta) (bad string, err error) {
	*m = Meta{}
	c, err := s.must()
	if err != nil {
		return "", err
	}
	if c != '{' {
		return "metadata is not an object", s.value()
	}
	s.pos++
	for first := true; ; first = false {
		more, err := s.elem(first, '}')
		if !more || err != nil {
			return bad, err
		}
		key, err := s.key()
		if err != nil {
			return "", err
		}
		var into *string
		switch string(key) {
		case "name":
			into = &m.Name
		case "namespace":
			into = &m.Namespace
		case "uid":
			into = &m.UID
		case "resourceVersion":
			into = &m.ResourceVersion
		default:
			if err := s.value(); err != nil {
				return "", err
			}
			continue
		}
		v, ok, err := s.text()
		if err != nil {
			return "", err
		}
		if !ok {
			bad = "a field of metadata that must be a string is none"
		}
		*into = v
	}
}
