package journal

import (
	"path/filepath"
	"slices"
)

// fileSystem is one that other machines may write to. The zero value is a local one, or one that is not known.
type fileSystem struct {
	name string
	// perhaps says that it depends: see fileSystems.
	perhaps bool
}

// fileSystemOf returns the file system that a directory is on; tests change it.
var fileSystemOf = statFileSystem

// checkPlace refuses a network file system, and reports one that may be one. A symbolic link counts where it is, with
// the log beside it, and where the file is.
func checkPlace(path string, report func(fileSystem string)) error {
	dirs := []string{filepath.Dir(path)}
	if file, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(dirs, filepath.Dir(file)) {
		dirs = append(dirs, filepath.Dir(file))
	}
	perhaps := ""
	for _, dir := range dirs {
		switch fs := fileSystemOf(dir); {
		case fs.name == "":
		case fs.perhaps:
			perhaps = fs.name
		default:
			return &NetworkError{Path: path, FileSystem: fs.name}
		}
	}
	if perhaps != "" && report != nil {
		report(perhaps)
	}
	return nil
}
