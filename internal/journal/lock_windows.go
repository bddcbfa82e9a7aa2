package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow is 0: Windows opens the link itself only through another call. Making links needs a privilege there.
const noFollow = 0

// lockOffset is which byte of the file is locked: far behind the process id, since a locked byte cannot be read by others.
const lockOffset = 1 << 30

// flock takes the lock of an open file, if nobody has it; it is released with the file, also by a crash. The lock is
// the handle's: this process cannot have it twice.
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
