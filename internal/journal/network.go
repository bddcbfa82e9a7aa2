package journal

import "path/filepath"

// fileSystem is a file system that other machines may write to. The zero value is a local or an unknown one.
type fileSystem struct {
	name string
	// perhaps: it may as well be local; see fileSystems.
	perhaps bool
}

// fileSystemOf returns the file system that a directory is on; tests change it.
var fileSystemOf = statFileSystem

// checkPlace returns an error for a network file system, and calls report for one that may be one.
func checkPlace(path string, report func(fileSystem string)) error {
	switch fs := fileSystemOf(filepath.Dir(path)); {
	case fs.name != "" && !fs.perhaps:
		return &NetworkError{Path: path, FileSystem: fs.name}
	case fs.name != "" && report != nil:
		report(fs.name)
	}
	return nil
}
