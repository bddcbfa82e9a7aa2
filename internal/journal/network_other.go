//go:build !linux

package journal

// statFileSystem is not implemented on this system.
func statFileSystem(string) fileSystem { return fileSystem{} }
