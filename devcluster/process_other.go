//go:build !linux

package devcluster

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// sysProcAttr puts a child into a new group, or into a new session if it is to
// outlive this process. If this process is killed, the child remains.
func sysProcAttr(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// diesWithParent is false: only Linux has Pdeathsig.
const diesWithParent = false

// identify returns the start time and program of a process, which distinguish it
// from others with its pid. The identity of a process that has ended is "".
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
