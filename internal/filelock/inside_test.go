//go:build linux || darwin || windows

package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/internal/filelock"
)

// TestInside: the lock inside a file holds for each of its names, beside locks of the whole file, and until it is closed.
func TestInside(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	open := func(path string) *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first := open(path)
	if ok, err := filelock.TryLockInside(first.Fd()); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if err := open(path).Close(); err != nil { // this must not release it
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if ok, err := filelock.TryLockInside(open(name).Fd()); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if b, err := os.ReadFile(path); string(b) != "content" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if ok, err := filelock.TryLockInside(open(link).Fd()); !ok || err != nil {
		t.Errorf("after the first was closed: %v, %v", ok, err)
	}
}
