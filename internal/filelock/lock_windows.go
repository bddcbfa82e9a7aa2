package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset is the upper half of the locked byte's offset, behind every file's end: other processes cannot read a locked
// byte.
const lockOffset = 1 << 30

// TryLock locks an open file, given by its descriptor; ok is false if it is locked already. The lock is released with the
// file, also by a crash. It belongs to the handle: this process cannot take it twice.
func TryLock(fd uintptr) (ok bool, err error) {
	at := windows.Overlapped{OffsetHigh: lockOffset}
	err = windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, os.NewSyscallError("LockFileEx", err)
}
