package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow is 0: on Windows, making links needs a privilege, and opening a link itself takes another call.
const noFollow = 0

// lockOffset is the locked byte, far behind the process id: other processes cannot read a locked byte.
const lockOffset = 1 << 30

// flock tries to lock an open file. The lock is released with the file, also by a crash. It belongs to the handle: this
// process cannot take it twice.
func flock(f *os.File) (ok bool, err error) {
	at := windows.Overlapped{Offset: lockOffset}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, os.NewSyscallError("LockFileEx", err)
}
