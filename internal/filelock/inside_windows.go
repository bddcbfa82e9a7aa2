package filelock

// TryLockInside is TryLock, which locks a byte behind the end of the file.
func TryLockInside(fd uintptr) (ok bool, err error) { return TryLock(fd) }
