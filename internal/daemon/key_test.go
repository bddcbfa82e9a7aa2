package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tattler", "redaction.key")
	keys := make([][]byte, 8)
	var starting sync.WaitGroup
	for i := range keys { // several daemons on one machine
		starting.Go(func() {
			var err error
			if keys[i], err = LoadKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	for _, k := range keys {
		if len(k) != keyBytes || !bytes.Equal(k, keys[0]) {
			t.Errorf("%x, and %x", k, keys[0])
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestKeyIsSafe: a new key and its new directories survive a crash of the machine.
func TestKeyIsSafe(t *testing.T) {
	top := t.TempDir()
	path := filepath.Join(top, "config", "tattler", "redaction.key")
	var synced []string
	sync := func(dir string) error {
		if _, err := ReadKey(path); err != nil {
			t.Errorf("%s is made safe before the key is there: %v", dir, err)
		}
		synced = append(synced, dir)
		return nil
	}
	for range 2 {
		if _, err := loadKey(path, sync); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{filepath.Dir(path), filepath.Join(top, "config"), top}; !slices.Equal(synced, want) {
		t.Errorf("made safe: %v, want %v", synced, want)
	}
	broken := errors.New("disk gone")
	if _, err := loadKey(filepath.Join(top, "other"), func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an unsafe key is a success: %v", err)
	}
}

func TestBadKeys(t *testing.T) {
	for _, tc := range []struct {
		why, content string
		mode         os.FileMode
		want         string
	}{
		{"cut off", "c2hvcnQ=", 0o600, "restore it"},
		{"not base64", strings.Repeat("?", 44), 0o600, "restore it"},
		{"empty", "", 0o600, "restore it"},
		{"readable by others", "", 0o644, "chmod 600"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(tc.content), tc.mode); err != nil {
			t.Fatal(err)
		}
		_, err := LoadKey(path)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", tc.why, err)
		}
		if tc.content != "" && strings.Contains(err.Error(), tc.content) {
			t.Errorf("%s: the error has the key: %v", tc.why, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(filepath.Join(file, "key")); err == nil {
		t.Error("a file was taken for a folder")
	}
}
