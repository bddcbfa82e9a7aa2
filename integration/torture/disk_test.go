package torture

import (
	"os"
	"testing"
)

// disk is a folder that can be full.
type disk struct {
	dir string
	// fill leaves no space, for the process with that id or for all; free ends that. They are nil if this
	// system does not support it. limit makes every write fail, even without growth: SQLite overwrites its log.
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
