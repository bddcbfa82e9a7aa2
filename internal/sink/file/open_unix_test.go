//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestCannotOpen(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(dir, "held")
	send(t, newSink(t, Options{Path: held}), 0, 1)
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why, path string
		want      error
		text      string
	}{
		{"no directory", filepath.Join(dir, "none", "a.jsonl"), fs.ErrNotExist, ""},
		{"a directory", dir, nil, "not a regular file"},
		{"a pipe that nobody reads would hang", fifo, nil, "not a regular file"},
		{"another sink has it", held, errLocked, ""},
		{"below a file", filepath.Join(held, "a"), syscall.ENOTDIR, ""},
		{"a loop of links", loop, syscall.ELOOP, ""},
		{"a full disk", "/dev/full", syscall.ENOSPC, ""},
	} {
		s := newSink(t, Options{Path: tc.path})
		for range 2 { // the second time as well
			n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
			var permanent *sink.PermanentError
			if n != 0 || err == nil || errors.As(err, &permanent) || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %d, %v", tc.why, n, err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.path) {
				t.Errorf("%s: %v does not name the file", tc.why, err)
			}
		}
	}
	if n := len(readLines(t, held)); n != 1 {
		t.Errorf("the held file has %d lines", n)
	}
}
