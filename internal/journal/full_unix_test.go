//go:build linux || darwin

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fillDisk appends a history while files may hardly grow; failed appends are repeated, once in vain and once while files may
// grow.
func fillDisk(path string) error {
	ctx := context.Background()
	signal.Ignore(syscall.SIGXFSZ)
	h := newHistory(7)
	j, err := Open(ctx, path, Options{Cluster: "prod"})
	if err != nil {
		return err
	}
	failures := 0
	for h.steps < 150 {
		batches, want := h.next()
		if err := limitFiles(path, int64(h.steps%7)*3000); err != nil {
			return err
		}
		got, err := j.Append(ctx, batches)
		var full *WriteError
		for tries := 0; errors.As(err, &full) && tries < 2; tries++ {
			failures++
			// Nothing of it was written, and everything else is there.
			last, lastErr := j.Last(ctx)
			if lastErr != nil || last != want.Last-int64(want.Rows) {
				return fmt.Errorf("after a failure the last change is %d, %w, want %d", last, lastErr, want.Last-int64(want.Rows))
			}
			if tries > 0 { // once in vain
				if err := limitFiles(path, 1<<30); err != nil {
					return err
				}
			}
			got, err = j.Append(ctx, batches)
		}
		if err != nil || got != want {
			return fmt.Errorf("step %d: %+v, %w; want %+v", h.steps, got, err, want)
		}
	}
	if failures < 10 {
		return fmt.Errorf("only %d failures", failures)
	}
	fmt.Println("failures:", failures)
	return j.Close()
}

// limitFiles bounds by how many bytes the journal's files may grow.
func limitFiles(path string, more int64) error {
	var size int64
	for _, name := range []string{path, path + "-wal"} {
		fi, err := os.Stat(name)
		if err != nil {
			return err
		}
		size = max(size, fi.Size())
	}
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = uint64(size + more)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

// TestDiskFull runs fillDisk in a child, because the limit applies to a process.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	out, err := command(t, "full", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "failures:") {
		t.Fatalf("%v: %s", err, out)
	}
	h := newHistory(7)
	for h.steps < 150 {
		h.next()
	}
	h.checkStates(t, open(t, path))
	h.check(t, path)
}
