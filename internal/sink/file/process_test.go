package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
