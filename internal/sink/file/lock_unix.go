//go:build unix && !solaris && !aix

package file

import (
	"errors"
	"syscall"
)

// errLocked is about a file that another process appends to.
var errLocked = errors.New("another process appends to it")

// lock takes the file until it is closed, also by a kill -9.
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
