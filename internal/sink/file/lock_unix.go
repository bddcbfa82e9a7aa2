//go:build unix && !solaris && !aix

package file

import (
	"errors"
	"syscall"
)

// errLocked means that another process appends to the file.
var errLocked = errors.New("another process appends to it")

// lock holds the file until it is closed, or until the process ends, even by a kill -9.
func lock(fd uintptr) error {
	for {
		err := syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
			return nil // a file system without locks
		default:
			return err
		}
	}
}
