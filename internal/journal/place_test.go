package journal

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPlaceOf(t *testing.T) {
	dir := t.TempDir()
	placed(t, map[string]fileSystem{dir: {name: "FUSE", perhaps: true}})
	p, err := PlaceOf(filepath.Join(dir, "a", "b", "journal.db"))
	must(t, err)
	if p.Dir != dir || p.FileSystem != "FUSE" || !p.Perhaps || p.Used != 0 || p.Reserve != 0 {
		t.Errorf("before there is a folder: %+v", p)
	}
	path := filepath.Join(dir, "journal.db")
	for name, size := range map[string]int{path: 100, path + "-wal": 20, path + "-reserve": 3} {
		must(t, os.WriteFile(name, make([]byte, size), 0o600))
	}
	p, err = PlaceOf(path)
	must(t, err)
	if p.Used != 120 || p.Reserve != 3 {
		t.Errorf("%+v", p)
	}
	if _, err := PlaceOf(filepath.Join(path, "below", "a file")); err == nil {
		t.Error("a file in place of a folder")
	}
}
