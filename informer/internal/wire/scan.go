package wire

import (
	"encoding/json"
	"errors"
	"io"
)

const (
	// MaxObject bounds one object, in bytes. etcd's default bounds what is written at 1.5 MiB, but
	// aggregated API servers have other stores.
	MaxObject = 64 << 20
	// maxDepth bounds the nesting of a field's value. encoding/json gives up at 10,000, counted from
	// the outermost bracket; what is deeper could not be decoded later.
	maxDepth = 9_990

	minWindow = 4 << 10  // an idle watch costs this much
	maxIdle   = 64 << 10 // a window that one large object made larger is given back
)

// scanner reads JSON strictly (RFC 8259) from a window over a reader, without decoding it.
//
// What lies before pos may leave the window whenever more is read, unless hold is set: then the
// window keeps everything from buf[from] on. Positions that must survive a read are therefore
// relative to from.
type scanner struct {
	r     io.Reader // nil: buf is all there is
	buf   []byte
	pos   int
	from  int
	hold  bool
	base  int64  // the offset of buf[0] in the input
	limit int    // of the bytes held
	stack []byte // the open brackets of the value being skipped
	err   error  // what the reader said last
}

func newScanner(r io.Reader) scanner {
	return scanner{r: r, buf: make([]byte, 0, minWindow), limit: MaxObject}
}

// keep begins to hold the input from here on.
func (s *scanner) keep() {
	if len(s.buf)-s.pos < minWindow && cap(s.buf) > maxIdle {
		s.buf = append(make([]byte, 0, minWindow), s.buf[s.pos:]...)
		s.base += int64(s.pos)
		s.pos = 0
	}
	s.from, s.hold = s.pos, true
}

// release returns what was held; it is valid until the next read.
func (s *scanner) release() []byte {
	s.hold = false
	return s.buf[s.from:s.pos]
}

// more reads at least one byte into the window.
func (s *scanner) more() error {
	if s.r == nil {
		return io.EOF
	}
	if s.err != nil {
		return s.err
	}
	s.slide()
	if s.hold && len(s.buf) >= s.limit {
		return &TooLargeError{Limit: s.limit}
	}
	if len(s.buf) == cap(s.buf) {
		s.buf = append(make([]byte, 0, 2*cap(s.buf)), s.buf...)
	}
	for range 100 {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// slide moves what is still needed to the start of the window.
func (s *scanner) slide() {
	start := s.pos
	if s.hold {
		start = s.from
	}
	if start == 0 {
		return
	}
	n := copy(s.buf, s.buf[start:])
	s.buf = s.buf[:n]
	s.base += int64(start)
	s.pos -= start
	s.from = 0
}

// peek returns the next byte without consuming it.
func (s *scanner) peek() (byte, error) {
	if s.pos == len(s.buf) {
		if err := s.more(); err != nil {
			return 0, err
		}
	}
	return s.buf[s.pos], nil
}

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

// must is token where the input may not end.
func (s *scanner) must() (byte, error) {
	c, err := s.token()
	return c, inside(err)
}

// inside turns the end of the input into the error it is within a value.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *scanner) syntax(msg string) error {
	return &SyntaxError{Offset: s.base + int64(s.pos), Msg: msg}
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

// key reads the name of a field and the colon behind it. The bytes are valid until the next read.
func (s *scanner) key() ([]byte, error) {
	if c, err := s.must(); err != nil || c != '"' {
		return nil, orSyntax(err, s.syntax("want a field's name"))
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
	c, err := s.must()
	if err != nil {
		return "", false, err
	}
	if c != '"' {
		return "", c == 'n', s.value()
	}
	nested := s.hold
	if !nested {
		s.keep()
	}
	off := s.pos - s.from
	if err := s.str(); err != nil {
		return "", false, err
	}
	b, err := unquote(s.buf[s.from+off : s.pos])
	s.hold = nested
	return string(b), true, err
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

func orSyntax(err, syntax error) error {
	if err != nil {
		return err
	}
	return syntax
}
