package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNetworkFileSystem: a journal between machines is refused, and nothing is made there, unless that is allowed.
func TestNetworkFileSystem(t *testing.T) {
	defer func(was func(string) string) { fileSystem = was }(fileSystem)
	dir := t.TempDir()
	if fs := fileSystem(dir); fs != "" {
		t.Fatalf("the test's own directory is on %s", fs)
	}
	fileSystem = func(d string) string {
		if d != dir {
			t.Errorf("asked of %s", d)
		}
		return "NFS"
	}
	path := filepath.Join(dir, "journal.db")
	_, err := Open(t.Context(), path, Options{Cluster: "test", LocalOnly: true})
	if network := new(NetworkError); !errors.As(err, &network) || !strings.Contains(err.Error(), path+" is on NFS") {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("made %v, %v", files, err)
	}
	j, err := Open(t.Context(), path, Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
