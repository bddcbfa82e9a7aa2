//go:build unix

package journal

import "syscall"

// noFollow makes opening a file fail if it is a symbolic link, whose target would be truncated.
const noFollow = syscall.O_NOFOLLOW
