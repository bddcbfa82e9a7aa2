package wire

import (
	"encoding/json"
	"io"
)

// maxDepth bounds the nesting of a field's value. encoding/json gives up at 10,000, counted from the
// outermost bracket; what is deeper could not be decoded later.
const (
	maxDepth = 9_990
	tooDeep  = "nested too deeply"
)

// scanner reads JSON strictly (RFC 8259) from a window, without decoding it.
type scanner struct {
	window
	depth     int  // of the value being skipped
	droppable bool // an object is being read, which may be given up
	deep      bool // and is: a value was nested deeper than it may
}

func newScanner(r io.Reader, size int) scanner { return scanner{window: newWindow(r, size)} }

// scan reads an object that is held already.
func scan(raw []byte) scanner { return scanner{window: heldWindow(raw)} }

// token skips white space and returns the next byte without consuming it. At the end of the input
// it fails with io.EOF.
func (s *scanner) token() (byte, error) {
	for {
		c, err := s.peek()
		if err != nil {
			return 0, err
		}
		if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, nil
		}
		s.pos++
	}
}

// at is the byte at pos, or 0 where the window ends. It is what must and peek nearly always do, at
// the cost of no call.
func (s *scanner) at() byte {
	if s.pos < len(s.buf) {
		return s.buf[s.pos]
	}
	return 0
}

// must is token where the input may not end.
func (s *scanner) must() (byte, error) {
	if c := s.at(); c > ' ' { // as nearly always
		return c, nil
	}
	c, err := s.token()
	return c, inside(err)
}

func (s *scanner) syntax(msg string) error {
	return &SyntaxError{Format: JSON, Offset: s.offset(), Msg: msg}
}

// expect consumes one punctuation byte.
func (s *scanner) expect(want byte) error {
	c, err := s.must()
	if err != nil {
		return err
	}
	if c != want {
		return s.syntax("want " + string(rune(want)))
	}
	s.pos++
	return nil
}

// elem moves to the next element of an object or array: it consumes the comma before it, or the
// closing bracket, where it returns false.
func (s *scanner) elem(first bool, closing byte) (bool, error) {
	c, err := s.must()
	if err != nil {
		return false, err
	}
	if c == closing {
		s.pos++
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, s.syntax("want , or " + string(rune(closing)))
	}
	s.pos++
	return true, nil
}

// members reads the object at pos; field consumes the value of each of its fields. The key is valid
// until then.
func (s *scanner) members(field func(key []byte) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.elem(first, '}')
		if !more || err != nil {
			return err
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
	}
}

// key reads the name of a field and the colon behind it. The bytes are valid until the next read.
func (s *scanner) key() ([]byte, error) {
	c, err := s.must()
	if err != nil {
		return nil, err
	}
	if c != '"' {
		return nil, s.syntax("want a field's name")
	}
	nested := s.hold
	if !nested {
		s.keep()
	}
	off := s.pos - s.from
	if err := s.str(); err != nil {
		return nil, err
	}
	end := s.pos - s.from
	if err := s.expect(':'); err != nil {
		return nil, err
	}
	name := s.buf[s.from+off : s.from+end]
	s.hold = nested
	return unquote(name)
}

// text reads a string, or null as the empty string. ok is false where the value is neither; it is
// skipped then.
func (s *scanner) text() (v string, ok bool, err error) {
	b, ok, err := s.textBytes()
	return string(b), ok, err
}

// textBytes is text; what it returns is valid until the next read.
func (s *scanner) textBytes() (v []byte, ok bool, err error) {
	c, err := s.must()
	if err != nil {
		return nil, false, err
	}
	if c != '"' {
		return nil, c == 'n', s.value()
	}
	nested := s.hold
	if !nested {
		s.keep()
	}
	off := s.pos - s.from
	if err := s.str(); err != nil {
		return nil, false, err
	}
	v, err = unquote(s.buf[s.from+off : s.pos])
	s.hold = nested
	return v, true, err
}

// unquote returns a string's value. Escapes are rare: the slow way is good enough for them.
func unquote(quoted []byte) ([]byte, error) {
	plain := quoted[1 : len(quoted)-1]
	for _, c := range plain {
		if c == '\\' {
			var v string
			err := json.Unmarshal(quoted, &v)
			return []byte(v), err
		}
	}
	return plain, nil
}
