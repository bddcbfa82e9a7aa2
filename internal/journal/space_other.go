//go:build !(darwin || linux || windows)

package journal

// freeSpaceOf is not implemented on this system.
func freeSpaceOf(string) (free int64, known bool) { return 0, false }
