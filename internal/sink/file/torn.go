package file

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// ours is how each of our lines begins: package event writes it first.
const ours = `{"specversion":"`

// errForeign is about a file that something else has written.
var errForeign = errors.New("it does not end with a line end, and what is there is not the beginning of an event: not touching it")

// wholeLines returns where the last whole line ends. What follows must be the beginning of an event: a
// file that something else wrote is not to be cut.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	const chunk = 64 << 10
	buf := make([]byte, chunk)
	end := size
	for end > 0 {
		start := max(0, end-chunk)
		part := buf[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end = start + int64(i) + 1
			break
		}
		end = start
	}
	if end == size {
		return end, nil
	}
	head := buf[:min(int64(len(ours)), size-end)]
	if _, err := f.ReadAt(head, end); err != nil {
		return 0, err
	}
	if !strings.HasPrefix(ours, string(head)) {
		return 0, errForeign
	}
	return end, nil
}
