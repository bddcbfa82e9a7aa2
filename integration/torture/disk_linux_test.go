package torture

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"unsafe"
)

// diskSize is the size of the small disk.
const diskSize = "1g"

// fillable makes the folder a separate file system if permitted. It is full when its size is reduced to its
// content. Otherwise the daemon's files are limited in size.
func fillable(t *testing.T, d *disk) {
	t.Helper()
	d.limit = func(pid int) error { return limitFiles(pid, 1) }
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size="+diskSize+",mode=0700"); err != nil {
		t.Logf("no separate file system (%v): RLIMIT_FSIZE makes the disk full", err)
		d.how, d.fill, d.free = "RLIMIT_FSIZE", d.limit, func(pid int) error { return limitFiles(pid, ^uint64(0)) }
		return
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, 0); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
	})
	d.how = "tmpfs"
	d.fill = func(int) error {
		// The daemon keeps writing, and a file system cannot be made smaller than its content: retry.
		for try := 0; ; try++ {
			var st syscall.Statfs_t
			if err := syscall.Statfs(d.dir, &st); err != nil {
				return fmt.Errorf("measure the small disk: %w", err)
			}
			used := (st.Blocks - st.Bfree) * uint64(st.Bsize)
			if err := remount(d.dir, fmt.Sprint(max(used, 4096))); !errors.Is(err, syscall.EINVAL) || try == 100 {
				return err
			}
		}
	}
	d.free = func(pid int) error { return errors.Join(remount(d.dir, diskSize), limitFiles(pid, ^uint64(0))) }
}

func remount(dir, size string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size+",mode=0700"); err != nil {
		return fmt.Errorf("make the small disk %s: %w", size, err)
	}
	return nil
}

// limitFiles bounds the size of the files that a process can write. Go ignores the accompanying SIGXFSZ, so the
// write fails with EFBIG.
func limitFiles(pid int, size uint64) error {
	limit := syscall.Rlimit{Cur: size, Max: ^uint64(0)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("limit files of process %d: %w", pid, errno)
	}
	return nil
}
