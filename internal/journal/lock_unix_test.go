//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLockIsNoLink checks that a symbolic link in the lock's place, perhaps put there by others, does not make the
// journal overwrite its target.
func TestLockIsNoLink(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "journal.db"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path+".lock"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, Options{Cluster: "test"})
	if err == nil || !strings.Contains(err.Error(), path+".lock is a symbolic link") {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a journal was made: %v", err)
	}
}
