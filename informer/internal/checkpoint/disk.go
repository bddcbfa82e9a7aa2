package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// disk is the directory of the files, by name. Create, Rename and Remove are durable only after a Sync.
type disk interface {
	// Open opens a regular file for reading, Append one for writing at its end.
	Open(name string) (file, error)
	Append(name string) (file, error)
	// Create creates a file for writing. It must not exist.
	Create(name string) (file, error)
	// Rename replaces any file that has the new name.
	Rename(from, to string) error
	Remove(name string) error
	Sync() error
	// Has reports whether a name is still that of an open file.
	Has(name string, f file) (bool, error)
}

type file interface {
	io.ReadWriteCloser
	Size() (int64, error)
	// Sync makes everything written durable.
	Sync() error
}

// rootDisk is a real directory, as long as it is this process's. Names cannot lead out of it.
type rootDisk struct{ dir *Dir }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (d rootDisk) Open(name string) (file, error)   { return d.open(name, os.O_RDONLY) }
func (d rootDisk) Append(name string) (file, error) { return d.open(name, os.O_WRONLY|os.O_APPEND) }

func (d rootDisk) Create(name string) (file, error) {
	root, err := d.dir.current()
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d rootDisk) Rename(from, to string) error {
	root, err := d.dir.current()
	if err != nil {
		return err
	}
	return root.Rename(from, to)
}

func (d rootDisk) Remove(name string) error {
	root, err := d.dir.current()
	if err != nil {
		return err
	}
	return root.Remove(name)
}

func (d rootDisk) Sync() error {
	root, err := d.dir.current()
	if err != nil {
		return err
	}
	return syncDir(root)
}

func (d rootDisk) Has(name string, f file) (bool, error) {
	root, err := d.dir.current()
	if err != nil {
		return false, err
	}
	at, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	ours, ok := f.(osFile)
	if err != nil || !ok {
		return false, err
	}
	open, err := ours.Stat()
	return err == nil && os.SameFile(at, open), err
}

func (d rootDisk) open(name string, flags int) (file, error) {
	root, err := d.dir.current()
	if err != nil {
		return nil, err
	}
	return openRegular(root, name, flags)
}

// openRegular opens only regular files: no links, and no pipes, which could block.
func openRegular(root *os.Root, name string, flags int) (file, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, irregular(name, before)
	}
	f, err := root.OpenFile(name, flags|nonblock, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(before, now) {
		err = irregular(name, now)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func irregular(name string, fi fs.FileInfo) error {
	return fmt.Errorf("open %s: not a regular file: %v", name, fi.Mode())
}
