package wire

import (
	"bytes"
	"io"

	"github.com/tattler-dev/tattler/internal/jsonscan"
)

// maxDepth bounds the nesting of a field's value. encoding/json refuses a depth of 10,000, counted from the
// outermost bracket, so deeper values could not be decoded later.
const (
	maxDepth = 9_990
	tooDeep  = "nested too deeply"
)

// scanner reads JSON strictly (RFC 8259) from a window, without decoding it.
type scanner struct {
	window
	depth     int  // of the value being skipped
	droppable bool // an object is being read, which can be dropped if it is too deep
	deep      bool // the object being read has a value nested deeper than maxDepth
}

func newScanner(r io.Reader, size int) scanner { return scanner{window: newWindow(r, size)} }

// scan reads an object that is in memory as a whole.
func scan(raw []byte) scanner { return scanner{window: heldWindow(raw)} }

// token skips white space and returns the next byte without consuming it, or io.EOF at the end of the input.
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

// at returns the byte at pos, or 0 at the end of the window. It is the inlined fast path of must and peek.
func (s *scanner) at() byte {
	if s.pos < len(s.buf) {
		return s.buf[s.pos]
	}
	return 0
}

// must is token where the input must not end.
func (s *scanner) must() (byte, error) {
	if c := s.at(); c > ' ' { // nearly always true
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

// elem moves to the next element of an object or array: it consumes the comma before it. At the closing bracket
// it consumes that and returns false.
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

// members reads the object at pos. field consumes the value of each field; the key is valid until it does.
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

// key reads a field's name and the colon after it. The bytes are valid until the next read.
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
	return unquote(name), nil
}

// text reads a string, or null as the empty string. For any other value it skips the value and returns false.
func (s *scanner) text() (v string, ok bool, err error) {
	b, ok, err := s.textBytes()
	return string(b), ok, err
}

// textBytes is text; its result is valid until the next read.
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
	v = unquote(s.buf[s.from+off : s.pos])
	s.hold = nested
	return v, true, nil
}

// unquote returns a string's value.
func unquote(quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	return jsonscan.Unquote(nil, text)
}
