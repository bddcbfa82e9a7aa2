//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
	"errors"
	"os"
	"syscall"
)

// noFollow has opening the lock fail where it is a symbolic link: what that leads to would be cut.
const noFollow = syscall.O_NOFOLLOW

// flock takes the lock of an open file, if nobody has it; it is released with the file, also by a
// crash. The lock is the file description's: this process cannot have it twice.
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
