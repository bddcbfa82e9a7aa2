package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// The environment of the processes that tests start from this binary: the file they write.
const (
	envFlood = "TATTLER_FILE_TEST_FLOOD"
	envLimit = "TATTLER_FILE_TEST_LIMIT"
)

// flood writes large batches until it is killed.
func flood(path string) int {
	s, err := New(Options{Path: path, Sync: Never, Rotate: Rotate{Size: 1 << 20, Keep: 1000}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for n := 0; ; n += 200 {
		if _, err := s.Send(context.Background(), sinktest.Messages(n, 200)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// TestKilledWhileWriting checks that the file has only whole lines when it is opened after a kill -9.
func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.jsonl")
	for range 10 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envFlood+"="+path)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		was := size(path)
		sinktest.Until(t, func() error {
			if size(path) == was {
				return errors.New("nothing is written")
			}
			return nil
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the process ended by itself: %v, %s", err, &stderr)
		}
	}
	s := must(New(Options{Path: path}))(t)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := readIDs(t, path); len(got) == 0 {
		t.Error("nothing was written")
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

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
