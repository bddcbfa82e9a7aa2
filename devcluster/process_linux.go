package devcluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sysProcAttr puts a child into a new group, or into a new session if it is to
// outlive this process. See startProcess for Pdeathsig.
func sysProcAttr(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// diesWithParent reports whether this system has Pdeathsig.
const diesWithParent = true

// identify returns the program, boot id and start time of a process. Together they
// distinguish it from all other processes with its pid, also after a reboot. The
// identity of a process that has ended is "", also if its parent has not waited for it.
func identify(pid int) string {
	dir := fmt.Sprintf("/proc/%d", pid)
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return ""
	}
	// The second field is the name in parentheses, which may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return ""
	}
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if err != nil {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	// If the program was rebuilt, its old file is "deleted"; the process is still ours.
	return fmt.Sprintf("%s %s %s", strings.TrimSuffix(exe, " (deleted)"), bytes.TrimSpace(boot), fields[19])
}
