package devcluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sysProcAttr puts a child into its own group, or into its own session if it
// shall outlive us; see startProcess for Pdeathsig.
func sysProcAttr(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// diesWithParent says whether Pdeathsig works here.
const diesWithParent = true

// identify returns what tells a process from all others that ever had its pid,
// and from those after a reboot: program, boot and start time. It is "" for one
// that has ended, also if nobody has waited for it.
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
	// A rebuilt program's old file is "deleted"; its process is still ours.
	return fmt.Sprintf("%s %s %s", strings.TrimSuffix(exe, " (deleted)"), bytes.TrimSpace(boot), fields[19])
}
