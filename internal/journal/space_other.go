//go:build !(darwin || linux || windows)

package journal

// freeSpaceOf does not know here.
func freeSpaceOf(string) (free int64, known bool) { return 0, false }
