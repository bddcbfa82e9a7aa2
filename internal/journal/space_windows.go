package journal

import "golang.org/x/sys/windows"

// freeSpaceOf returns how many bytes a directory's disk has free for this user.
func freeSpaceOf(dir string) (free int64, known bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var mine uint64
	if err := windows.GetDiskFreeSpaceEx(name, &mine, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(mine, 1<<62)), true //nolint:gosec // 1<<62 is in range
}
