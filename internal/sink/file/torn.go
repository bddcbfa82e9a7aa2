package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// ours begins each of our lines: package event writes this key first.
const ours = `{"specversion":"`

// errForeign means that another program has written to the file.
var errForeign = errors.New("another program wrote its last line, which has no newline: leaving the file alone; end that line, or give the sink a file of its own")

// wholeLines returns the offset behind the last whole line. The rest must be the beginning of an event: the sink does
// not cut a file that another program wrote.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	end, err := lineStart(f, size)
	if err != nil || end == size {
		return end, err
	}
	head := make([]byte, min(int64(len(ours)), size-end))
	if _, err := f.ReadAt(head, end); err != nil {
		return 0, err
	}
	if !strings.HasPrefix(ours, string(head)) {
		return 0, errForeign
	}
	return end, nil
}

// lineStart returns the offset of the line that contains the byte before an offset; behind a newline, the offset itself.
func lineStart(f io.ReaderAt, end int64) (int64, error) {
	const chunk = 64 << 10
	buf := make([]byte, min(chunk, end))
	for end > 0 {
		start := max(0, end-chunk)
		part := buf[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// tail is the part of the file before its last line that is searched for repeats. A pump ends a batch with the message that
// makes it larger than 1 MiB: only that one may be of any size.
const tail = 2 << 20

// lastIDs returns the ids of the events in the last lines of a file.
func lastIDs(f io.ReaderAt, whole int64) (map[string]bool, error) {
	last, err := lineStart(f, max(0, whole-1))
	if err != nil {
		return nil, err
	}
	start := max(0, last-tail)
	b := make([]byte, whole-start)
	if _, err := f.ReadAt(b, start); err != nil && len(b) > 0 {
		return nil, err
	}
	if start > 0 { // skip the rest of a line
		b = b[bytes.IndexByte(b, '\n')+1:]
	}
	ids := map[string]bool{}
	for line := range bytes.Lines(b) {
		var e struct{ ID string }
		if err := json.Unmarshal(line, &e); err == nil && e.ID != "" {
			ids[e.ID] = true
		}
	}
	return ids, nil
}
