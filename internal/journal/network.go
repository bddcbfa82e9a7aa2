package journal

import "path/filepath"

// fileSystem is one that other machines may write to. The zero value is a local one, or one that is not known.
type fileSystem struct {
	name string
	// perhaps says that it depends: see fileSystems.
	perhaps bool
}

// fileSystemOf returns the file system that a directory is on; tests change it.
var fileSystemOf = statFileSystem

// checkPlace refuses a network file system, and reports one that may be one.
func checkPlace(path string, report func(fileSystem string)) error {
	switch fs := fileSystemOf(filepath.Dir(path)); {
	case fs.name != "" && !fs.perhaps:
		return &NetworkError{Path: path, FileSystem: fs.name}
	case fs.name != "" && report != nil:
		report(fs.name)
	}
	return nil
}
