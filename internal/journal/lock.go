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

// lockInside locks the journal's file itself, whatever its name is: a hard link, or the file mounted elsewhere, has a log and a
// lock of its own beside it. SQLite locks other bytes of the file.
func lockInside(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	ok, err := filelock.TryLockInside(f.Fd())
	if err == nil && !ok {
		err = &LockedError{Path: path, OtherName: true}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkInside returns the error of lockInside, for a journal that may not exist.
func checkInside(path string) error {
	f, err := lockInside(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.Close()
	}
	return err
}
