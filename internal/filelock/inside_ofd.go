//go:build linux || darwin

package filelock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// farByte is far behind every file's end, and behind the bytes that SQLite locks.
const farByte = 1 << 60

// TryLockInside locks a byte behind the end of a file, given by its descriptor, which must be open for writing; ok is false if
// it is locked already. Unlike TryLock, it does not disturb a library that locks other bytes of the file, such as SQLite, on
// whatever file system.
//
// The lock belongs to the open file, not to the process: the lock of a process would end with any other descriptor of the file.
func TryLockInside(fd uintptr) (ok bool, err error) {
	at := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: farByte, Len: 1}
	for {
		err := unix.FcntlFlock(fd, setLock, &at)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, os.NewSyscallError("fcntl", err)
		}
	}
}
