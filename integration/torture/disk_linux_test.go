package torture

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"unsafe"
)

// room is the size of the small disk.
const room = "1g"

// fillable makes the folder a file system of its own where we may, which is full when it is made as small
// as what is on it; else files of the daemon cannot grow.
func fillable(t *testing.T, d *disk) {
	t.Helper()
	d.limit = func(pid int) error { return limitFiles(pid, 1) }
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size="+room+",mode=0700"); err != nil {
		t.Logf("no file system of our own (%v): the disk is full by RLIMIT_FSIZE", err)
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
		// The daemon writes meanwhile, and a file system cannot be made smaller than what is on it: ask again.
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
	d.free = func(pid int) error { return errors.Join(remount(d.dir, room), limitFiles(pid, ^uint64(0))) }
}

func remount(dir, size string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size+",mode=0700"); err != nil {
		return fmt.Errorf("make the small disk %s: %w", size, err)
	}
	return nil
}

// limitFiles bounds the size of what a process can write to a file. Go ignores the SIGXFSZ that comes
// with it: the write fails with EFBIG.
func limitFiles(pid int, size uint64) error {
	limit := syscall.Rlimit{Cur: size, Max: ^uint64(0)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("limit files of process %d: %w", pid, errno)
	}
	return nil
}
