package upstream

import "syscall"

// diesWithThread has the kernel kill a process when the thread that started it ends.
func diesWithThread() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
