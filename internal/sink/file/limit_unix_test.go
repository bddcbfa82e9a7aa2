//go:build unix

package file

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// limited writes until the file must not grow, which the kernel reports in the middle of a line; then it writes as
// much as fits.
func limited(path string) int {
	signal.Ignore(syscall.SIGXFSZ)
	const limit = 5000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := New(Options{Path: path})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	acked, err := s.Send(context.Background(), sinktest.Messages(0, 20))
	fmt.Println(acked, size(path), err)
	acked, err = s.Send(context.Background(), sinktest.Messages(0, 2))
	fmt.Println(acked, size(path) > 0, err)
	return 0
}

// TestFull checks that a file that cannot grow keeps no partial line, and takes what fits.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.jsonl")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envLimit+"="+path)
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintf("0 0 append: write %s: file too large\n2 true <nil>\n", path)
	if err != nil || string(out) != want {
		t.Errorf("%v:\n got %q\nwant %q", err, out, want)
	}
	if got := readIDs(t, path); len(got) != 2 {
		t.Errorf("the file has %d lines, want 2", len(got))
	}
}
