// Package syncdir makes the names in a directory survive a crash of the machine.
package syncdir

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// Sync waits until the directory is on its disk. It does nothing on Windows, which does not sync directories, and on a
// file system that does not either.
//
// Source: fsync(2), which names EINVAL for files that cannot be synchronized.
func Sync(dir string) error {
	if runtime.GOOS == "windows" { // a directory opened for reading cannot be flushed
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
