//go:build darwin || linux

package journal

import "syscall"

// freeSpaceOf returns how many bytes a directory's disk has free for this user.
func freeSpaceOf(dir string) (free int64, known bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:gosec,unconvert // the types differ between systems
}
