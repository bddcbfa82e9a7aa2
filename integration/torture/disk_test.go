package torture

import (
	"os"
	"testing"
)

// disk is a folder that can be full.
type disk struct {
	dir string
	// fill leaves no room for more, for the process with that id or for all; free ends that. Nil: it cannot
	// be done here. Limit has every write fail, also where there was room: SQLite overwrites its log.
	fill, limit, free func(pid int) error
	how               string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{dir: t.TempDir(), how: "never"}
	if err := os.Chmod(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fillable(t, d)
	return d
}
