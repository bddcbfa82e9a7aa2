package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// placed makes directories lie on file systems until the test ends.
func placed(t *testing.T, on map[string]fileSystem) {
	t.Helper()
	was := fileSystemOf
	t.Cleanup(func() { fileSystemOf = was })
	fileSystemOf = func(dir string) fileSystem { return on[dir] }
}

// TestNetworkFileSystem: a journal on a network file system is refused, and no file is made, unless it is allowed.
func TestNetworkFileSystem(t *testing.T) {
	dir := t.TempDir()
	if fs := fileSystemOf(dir); fs.name != "" && !fs.perhaps {
		t.Fatalf("the test's own directory is on %s", fs.name)
	}
	placed(t, map[string]fileSystem{dir: {name: "NFS"}})
	path := filepath.Join(dir, "journal.db")
	_, err := Open(t.Context(), path, Options{Cluster: "test", LocalOnly: true})
	if network := new(NetworkError); !errors.As(err, &network) || !strings.Contains(err.Error(), path+" is on NFS") {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("made %v, %v", files, err)
	}
	j, err := Open(t.Context(), path, Options{Cluster: "test"})
	must(t, err)
	must(t, j.Close())
}

// TestPerhapsNetworkFileSystem: a file system that may be a network's is reported and used.
func TestPerhapsNetworkFileSystem(t *testing.T) {
	dir := t.TempDir()
	placed(t, map[string]fileSystem{dir: {name: "FUSE", perhaps: true}})
	for _, localOnly := range []bool{true, false} {
		reported := ""
		j, err := Open(t.Context(), filepath.Join(dir, "journal.db"), Options{
			Cluster: "test", LocalOnly: localOnly, PerhapsNetwork: func(fs string) { reported = fs },
		})
		must(t, err)
		must(t, j.Close())
		if want := map[bool]string{true: "FUSE", false: ""}[localOnly]; reported != want {
			t.Errorf("it reports %q, want %q", reported, want)
		}
	}
}

// TestLinkToNetworkFileSystem: a symbolic link does not hide where the journal is.
func TestLinkToNetworkFileSystem(t *testing.T) {
	far := t.TempDir()
	must(t, open(t, filepath.Join(far, "journal.db")).Close())
	link := filepath.Join(t.TempDir(), "journal.db")
	must(t, os.Symlink(filepath.Join(far, "journal.db"), link))
	placed(t, map[string]fileSystem{far: {name: "NFS"}})
	if _, err := Open(t.Context(), link, Options{LocalOnly: true}); !errors.As(err, new(*NetworkError)) {
		t.Errorf("%v", err)
	}
	placed(t, map[string]fileSystem{filepath.Dir(link): {name: "NFS"}})
	j, err := Open(t.Context(), link, Options{LocalOnly: true})
	must(t, err)
	must(t, j.Close())
}
