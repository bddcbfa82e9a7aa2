//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
	"errors"
	"os"
	"syscall"
)

// noFollow makes opening the lock fail if it is a symbolic link, whose target would be truncated.
const noFollow = syscall.O_NOFOLLOW

// flock tries to lock an open file. The lock is released with the file, also by a crash. It belongs to the file
// description: this process cannot take it twice.
func flock(f *os.File) (ok bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, os.NewSyscallError("flock", err)
		}
	}
}
