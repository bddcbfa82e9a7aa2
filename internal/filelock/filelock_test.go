package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/internal/filelock"
)

// TestOwn: one open file has the lock, and the others learn whose it is, until it is closed.
func TestOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func(text string) *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil && text != "" {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first := open("12345678901234567890 of a process that ended\n")
	if ok, pid, err := filelock.Own(first); !ok || pid != os.Getpid() || err != nil {
		t.Fatalf("%v, %d, %v", ok, pid, err)
	}
	if ok, pid, err := filelock.Own(open("")); ok || pid != os.Getpid() || err != nil {
		t.Errorf("a second open file: %v, %d, %v", ok, pid, err)
	}
	for text, want := range map[string]int{"": 0, "x\n": 0, "-7\n": 0, " 42 \n": 42} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, pid, err := filelock.Own(open("")); ok || pid != want || err != nil {
			t.Errorf("held by %q: %v, %d, %v", text, ok, pid, err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if ok, _, err := filelock.Own(open("")); !ok || err != nil {
		t.Errorf("after the first was closed: %v, %v", ok, err)
	}
	if raw, err := os.ReadFile(path); err != nil || len(raw) == 0 {
		t.Errorf("no process id is noted: %q, %v", raw, err)
	}
	closed := open("")
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if ok, _, err := filelock.Own(closed); ok || err == nil {
		t.Errorf("a closed file: %v, %v", ok, err)
	}
}
