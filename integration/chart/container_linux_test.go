package chart

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayMount reports whether a new mount namespace can be made. A container of a CI system may forbid it to root.
var mayMount = sync.OnceValue(func() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	return cmd.Run() == nil
})

// become makes the mounts in a namespace of its own, changes the root, drops all capabilities and runs the program.
func (c *container) become() error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	all := append([]mount{{Source: c.Root}}, c.Mounts...)
	for _, m := range all {
		to := filepath.Join(c.Root, m.Target)
		if err := unix.Mount(m.Source, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", to, err)
		}
	}
	if c.ReadOnly {
		all[0].ReadOnly = true
	}
	for _, m := range all {
		flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_NOSUID | unix.MS_NODEV)
		if m.ReadOnly {
			flags |= unix.MS_RDONLY
		}
		if err := unix.Mount("", filepath.Join(c.Root, m.Target), "", flags, ""); err != nil {
			return fmt.Errorf("remount %s: %w", m.Target, err)
		}
	}
	if err := errors.Join(unix.Chroot(c.Root), unix.Chdir("/")); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := errors.Join(syscall.Setgroups(c.Groups), syscall.Setgid(c.Group), syscall.Setuid(c.User)); err != nil {
		return fmt.Errorf("change the user: %w", err)
	}
	return syscall.Exec(c.Path, append([]string{c.Path}, c.Args...), c.Env) //nolint:gosec // as the image says
}
