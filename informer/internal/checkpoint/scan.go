package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// readAhead is how much of a file is read at once.
const readAhead = 256 << 10

// DamagedError says that a file cannot be used: what it holds from Offset on is not what was
// written, so that nobody knows what came after.
type DamagedError struct {
	Offset int64
	Reason string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("damaged at byte %d: %s", e.Offset, e.Reason)
}

// errBroken marks bytes that are no record; scanner.judge says what that means.
var errBroken = errors.New("broken record")

// scanner reads the records of a file, as far as it went when the scanner began.
type scanner struct {
	r    io.Reader
	size int64 // of the file

	seal seal

	buf  []byte // read and not consumed: the file from off on
	off  int64
	data []byte // what buf lies in
}

// newScanner reads the preface.
func newScanner(r io.Reader, size int64) (*scanner, error) {
	s := &scanner{r: r, size: size, data: make([]byte, min(readAhead, size))}
	b, err := s.peek(int(min(size, int64(prefaceSize))))
	if err != nil {
		return nil, err
	}
	id, err := readPreface(b)
	if err != nil {
		return nil, &DamagedError{Offset: 0, Reason: err.Error()}
	}
	s.seal = newSeal(id)
	s.skip(prefaceSize)
	return s, nil
}

// next returns the body of the next record, which is valid until the next call, and where the
// record began; io.EOF at the end, and errBroken where there is no record.
func (s *scanner) next() (body []byte, at int64, err error) {
	at = s.off
	if at == s.size {
		return nil, at, io.EOF
	}
	if s.size-at < recordHead {
		return nil, at, errBroken
	}
	head, err := s.peek(recordHead)
	if err != nil {
		return nil, at, err
	}
	n, sum := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if n == 0 || n > maxRecord || int64(n) > s.size-at-recordHead {
		return nil, at, errBroken // nothing was allocated for what it claims
	}
	b, err := s.peek(recordHead + int(n))
	if err != nil {
		return nil, at, err
	}
	body = b[recordHead:]
	if s.seal.crc(at, body) != sum {
		return nil, at, errBroken
	}
	s.skip(len(b))
	return body, at, nil
}

// peek returns the next n bytes, of which the file has as many.
func (s *scanner) peek(n int) ([]byte, error) {
	if len(s.buf) < n {
		if err := s.fill(n); err != nil {
			return nil, err
		}
	}
	return s.buf[:n], nil
}

// fill reads until n bytes are there, and as much more as fits.
func (s *scanner) fill(n int) error {
	have := len(s.buf)
	if n > len(s.data) {
		grown := make([]byte, n)
		copy(grown, s.buf)
		s.data = grown
	} else {
		copy(s.data, s.buf)
	}
	room := min(int64(len(s.data)), s.size-s.off)
	got, err := io.ReadAtLeast(s.r, s.data[have:room], n-have)
	s.buf = s.data[:have+got]
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF // somebody cuts it
	case err != nil:
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

func (s *scanner) skip(n int) {
	s.buf = s.buf[n:]
	s.off += int64(n)
}

// judge tells what broken bytes at an offset are. Nothing, if they are what a crash left of records
// that were not durable yet: nil. Else a *DamagedError: a commit further on says that the place had
// been durable before it. The scanner is used up.
func (s *scanner) judge(broken int64) error {
	for {
		c, at, err := s.findCommit()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c.durable > broken:
			reason := fmt.Sprintf("no record can be read here, but a later commit can, at byte %d", at)
			return &DamagedError{Offset: broken, Reason: reason}
		}
	}
}

// findCommit looks for the next commit from any byte on; io.EOF if there is none.
func (s *scanner) findCommit() (c commit, at int64, err error) {
	for {
		if want := min(recordHead+maxCommit, s.size-s.off); int64(len(s.buf)) < want {
			if err := s.fill(int(want)); err != nil {
				return c, 0, err
			}
		}
		i := -1
		if len(s.buf) > recordHead {
			i = bytes.Index(s.buf[recordHead:], []byte(commitMark))
		}
		switch {
		case i > 0:
			s.skip(i) // and make sure that all of it is there
			continue
		case i < 0 && s.off+int64(len(s.buf)) == s.size:
			return c, 0, io.EOF
		case i < 0:
			s.skip(len(s.buf) - recordHead - len(commitMark) + 1) // one may begin in what is left
			continue
		}
		if c, at, ok := s.commitHere(); ok {
			return c, at, nil
		}
	}
}

// commitHere reads the record that seems to begin here, if it is a commit; else it moves on.
func (s *scanner) commitHere() (c commit, at int64, ok bool) {
	if binary.LittleEndian.Uint32(s.buf) > maxCommit {
		s.skip(1)
		return c, 0, false
	}
	body, at, err := s.next()
	if err != nil {
		s.skip(1)
		return c, 0, false
	}
	fields, _ := bytes.CutPrefix(body, []byte(commitMark))
	c, err = readCommit(fields)
	return c, at, err == nil
}
