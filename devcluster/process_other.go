//go:build !linux

package devcluster

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// sysProcAttr puts a child into its own group, or into its own session if it
// shall outlive us. Nothing here ends it when we are killed.
func sysProcAttr(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// diesWithParent says that nothing here does what Pdeathsig does on Linux.
const diesWithParent = false

// identify returns what tells a process from others that had its pid: start time
// and program. It is "" for one that has ended.
func identify(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=,lstart=,comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	stat, rest, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(stat, "Z") {
		return ""
	}
	return strings.TrimSpace(rest)
}
