package journal

import (
	"os"
	"path/filepath"
)

// Place is where a journal is, or would be made.
type Place struct {
	// Dir is the nearest existing folder above the file.
	Dir string
	// FileSystem is the name of a network file system, or of one that may be one (Perhaps); empty for a local or an
	// unknown one.
	FileSystem string
	Perhaps    bool
	// Free are the bytes that the disk has free for this user; Known reports whether the system says that.
	Free  int64
	Known bool
	// Used are the bytes of the journal and its log, Reserve those held in reserve for a full disk; 0 if there is no
	// such file.
	Used, Reserve int64
}

// PlaceOf looks at the place of a journal, and opens no file. An error means that no folder above it can be read.
func PlaceOf(path string) (Place, error) {
	path, err := realPath(path)
	if err != nil {
		return Place{}, err
	}
	p := Place{Dir: filepath.Dir(path)}
	for {
		if _, err = os.Stat(p.Dir); err == nil {
			break
		}
		above := filepath.Dir(p.Dir)
		if !os.IsNotExist(err) || above == p.Dir {
			return p, err
		}
		p.Dir = above
	}
	fs := fileSystemOf(p.Dir)
	p.FileSystem, p.Perhaps = fs.name, fs.perhaps
	p.Free, p.Known = freeSpace(p.Dir)
	p.Used = sizeOf(path) + sizeOf(path+"-wal")
	p.Reserve = sizeOf(reservePath(path))
	return p, nil
}
