package request

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// unzipped reads a body of gzip members.
//
// API servers send a streaming list as one member per flush. compress/gzip, and so net/http, reads the next
// member's header before it returns the end of the previous member: the end of the list would arrive with the
// next change, minutes later. unzipped reads a header only when the bytes after it are requested.
type unzipped struct {
	body   io.ReadCloser
	in     *bufio.Reader
	z      gzip.Reader
	inside bool // within a member
}

func unzip(body io.ReadCloser) *unzipped {
	return &unzipped{body: body, in: bufio.NewReaderSize(body, 16<<10)}
}

// Read implements io.Reader.
func (u *unzipped) Read(p []byte) (int, error) {
	for {
		if !u.inside {
			if err := u.begin(); err != nil {
				return 0, err
			}
		}
		n, err := u.z.Read(p)
		if errors.Is(err, io.EOF) {
			u.inside, err = false, nil
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// begin reads a member's header. It returns io.EOF after the last member.
func (u *unzipped) begin() error {
	if _, err := u.in.Peek(1); err != nil {
		return err
	}
	err := u.z.Reset(u.in)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF // cut within the header
	}
	u.z.Multistream(false)
	u.inside = err == nil
	return err
}

// Close implements io.Closer. It ends a blocked Read.
func (u *unzipped) Close() error { return u.body.Close() }
