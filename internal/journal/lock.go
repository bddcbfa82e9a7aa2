package journal

import (
	"errors"
	"fmt"
	"os"

	"github.com/tattler-dev/tattler/internal/filelock"
)

// lockFile locks the journal by a file beside it. The file stays: removing it would race with the next lock.
func lockFile(path string) (*os.File, error) {
	lock := path + ".lock"
	f, err := os.OpenFile(lock, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if info, lerr := os.Lstat(lock); err != nil && lerr == nil && info.Mode().Type() == os.ModeSymlink {
		err = fmt.Errorf("%s is a symbolic link, whose target would be overwritten: remove it", lock)
	}
	if err != nil {
		return nil, err
	}
	ok, pid, err := filelock.Own(f)
	if err == nil && !ok {
		err = &LockedError{Path: path, PID: pid}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
