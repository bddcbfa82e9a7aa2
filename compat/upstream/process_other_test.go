//go:build !linux

package upstream

import "syscall"

// diesWithThread does nothing: only Linux kills a process when its parent ends.
func diesWithThread() *syscall.SysProcAttr { return nil }
