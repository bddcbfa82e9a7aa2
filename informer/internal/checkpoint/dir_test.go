//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func mode(t *testing.T, path string) fs.FileMode {
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Mode()
}

// TestFiles writes to a real directory, which is created, and reads it back.
func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "checkpoints")
	d := openDir(t, path)
	s := openStream(t, d, "pods")
	if _, err := s.Load(""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first run: %v", err)
	}
	if err := save(t, s); err != nil {
		t.Fatal(err)
	}
	st, err := s.Load("")
	if err != nil || describe(st) != "live 7: a@5" || !st.Trusted {
		t.Errorf("got %+v, %v", st, err)
	}
	if st, err := s.Load("other"); err != nil || st.Trusted {
		t.Errorf("with another fingerprint: got %+v, %v", st, err)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
		if m := mode(t, filepath.Join(path, f.Name())); m != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), m)
		}
	}
	if want := []string{"lock", "pods.checkpoint"}; !slices.Equal(names, want) {
		t.Errorf("the directory has %v, want %v", names, want)
	}
	if m := mode(t, path); m != fs.ModeDir|0o700 {
		t.Errorf("the directory has mode %v", m)
	}
}

func TestLocked(t *testing.T) {
	path := t.TempDir()
	d := openDir(t, path)
	other := Open(path)
	_, err := other.Stream("pods")
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Path != path || locked.PID != os.Getpid() {
		t.Errorf("a second Open: %v", err)
	}
	if err := os.WriteFile(filepath.Join(path, lockName), []byte("no number"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(path).Stream("pods"); !errors.As(err, &locked) || locked.PID != 0 {
		t.Errorf("with an unknown process: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Stream("pods"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	other.tried = other.tried.Add(-retryOpen)
	if _, err := other.Stream("pods"); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// TestStolen: a process whose lock was removed does not touch the files of the one that has the directory now.
func TestStolen(t *testing.T) {
	path := t.TempDir()
	s := openStream(t, openDir(t, path), "pods")
	if err := save(t, s); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, lockName)); err != nil {
		t.Fatal(err)
	}
	openDir(t, path)
	var locked *LockedError
	if err := s.abandon(); !errors.As(err, &locked) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(s.Path()); err != nil {
		t.Error(err)
	}
}

func TestInUse(t *testing.T) {
	d := openDir(t, t.TempDir())
	s := openStream(t, d, "pods")
	if _, err := d.Stream("pods"); !errors.Is(err, ErrInUse) {
		t.Errorf("a second Stream: %v", err)
	}
	openStream(t, d, "nodes")
	s.Close()
	openStream(t, d, "pods")
}

// TestOpenRefuses tries unusable directories. Open must refuse each without waiting.
func TestOpenRefuses(t *testing.T) {
	cases := map[string]func(t *testing.T, path string) error{
		"a file in its place": func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) },
		"a pipe in its place": func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to nowhere":   func(_ *testing.T, path string) error { return os.Symlink("nowhere", path) },
		"a pipe as its lock": func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), syscall.Mkfifo(filepath.Join(path, lockName), 0o600))
		},
		"a link as its lock": func(t *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Symlink(filepath.Join(t.TempDir(), "x"), filepath.Join(path, lockName)))
		},
		"a directory as its lock": func(_ *testing.T, path string) error { return os.MkdirAll(filepath.Join(path, lockName), 0o700) },
	}
	if os.Geteuid() != 0 { // root can write to read-only directories
		cases["read-only"] = func(_ *testing.T, path string) error { return os.Mkdir(path, 0o500) }
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if err := prepare(t, path); err != nil {
				t.Fatal(err)
			}
			d := Open(path)
			if _, err := d.Stream("pods"); err == nil {
				t.Error("it was opened")
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestInPlaceOfTheFile puts something else in the file's place. It must not be read or waited for, links are
// not followed, and everything but a directory is replaced.
func TestInPlaceOfTheFile(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		put  func(path string) error
		stay bool
	}{
		"a pipe":                 {put: func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		"a link":                 {put: func(path string) error { return os.Symlink(elsewhere, path) }},
		"a link to nowhere":      {put: func(path string) error { return os.Symlink("nowhere", path) }},
		"a link to itself":       {put: func(path string) error { return os.Symlink(filepath.Base(path), path) }},
		"a file that is damaged": {put: func(path string) error { return os.WriteFile(path, []byte("damaged"), 0o600) }},
		"a directory": {stay: true, put: func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
		}},
	} {
		for _, unfinishedToo := range []string{"", unfinished} {
			t.Run(name+unfinishedToo, func(t *testing.T) {
				s := openStream(t, openDir(t, t.TempDir()), "pods")
				if err := tc.put(s.Path() + unfinishedToo); err != nil {
					t.Fatal(err)
				}
				st, err := s.Load("")
				if damaged := strings.Contains(name, "damaged"); err == nil || unfinishedToo == "" && !damaged && !strings.Contains(err.Error(), "not a regular file") {
					t.Errorf("loaded %+v, %v", st, err)
				}
				if _, err := Verify(s.Path() + unfinishedToo); err == nil {
					t.Error("verify succeeds")
				}
				err = save(t, s)
				if tc.stay {
					if err == nil {
						t.Error("it was not kept")
					}
					return
				}
				if st, loadErr := s.Load(""); err != nil || loadErr != nil || describe(st) != "live 7: a@5" {
					t.Errorf("written: %v; loaded: %+v, %v", err, st, loadErr)
				}
				if m := mode(t, s.Path()); m != 0o600 {
					t.Errorf("it has mode %v", m)
				}
			})
		}
	}
	if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "precious" {
		t.Errorf("the link's target is %q, %v", b, err)
	}
}

// TestOfAnotherStream checks that a renamed file is not mistaken for this stream's.
func TestOfAnotherStream(t *testing.T) {
	d := openDir(t, t.TempDir())
	pods, nodes := openStream(t, d, "pods"), openStream(t, d, "nodes")
	if err := save(t, pods); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(pods.Path(), nodes.Path()); err != nil {
		t.Fatal(err)
	}
	var damage *DamagedError
	if _, err := nodes.Load(""); !errors.As(err, &damage) || !strings.Contains(err.Error(), "pods") {
		t.Errorf("got %v", err)
	}
}

func TestFileName(t *testing.T) {
	long := strings.Repeat("x", 300)
	seen := map[string]string{}
	for _, tc := range []struct{ stream, want string }{
		{"pods", "pods.checkpoint"},
		{"deployments.v1.apps-shop-1a2b", "deployments.v1.apps-shop-1a2b.checkpoint"},
		{"Pods", "%50ods.checkpoint"},
		{"a/b", "a%2fb.checkpoint"},
		{"../../etc/passwd", "%2e.%2f..%2fetc%2fpasswd.checkpoint"},
		{".", "%2e.checkpoint"},
		{"lock", "lock.checkpoint"},
		{"a%2fb", "a%252fb.checkpoint"},
		{"a\x00\n", "a%00%0a.checkpoint"},
		{"", "~e3b0c44298fc1c14.checkpoint"},
		{long, ""},
		{long + "y", ""},
		{strings.Repeat("/", 300), ""},
	} {
		got := fileName(tc.stream)
		if tc.want != "" && got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.stream, got, tc.want)
		}
		if len(got+unfinished) > 255 || !filepath.IsLocal(got) || filepath.Base(got) != got || seen[got] != "" {
			t.Errorf("%q: got %s, like %q", tc.stream, got, seen[got])
		}
		seen[got] = tc.stream
	}
}
