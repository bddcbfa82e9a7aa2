//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package checkpoint

import "os"

const nonblock = 0

// flock does nothing: package syscall has no such lock for this system. The user must ensure that only one
// process uses a directory.
func flock(*os.File) (ok bool, err error) { return true, nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(*os.Root) error { return nil }
