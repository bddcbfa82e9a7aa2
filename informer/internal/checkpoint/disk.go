package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// disk is the directory that files are in, by their names. After a Create, Rename or Remove, the
// directory is durable only behind a Sync.
type disk interface {
	// Open opens a regular file to read, Append one to write at its end.
	Open(name string) (file, error)
	Append(name string) (file, error)
	// Create makes a file that must not exist, to write.
	Create(name string) (file, error)
	// Rename replaces what has the new name.
	Rename(from, to string) error
	Remove(name string) error
	Sync() error
}

type file interface {
	io.ReadWriteCloser
	Size() (int64, error)
	// Sync makes what was written durable.
	Sync() error
}

// rootDisk is a real directory. Names cannot lead out of it.
type rootDisk struct{ root *os.Root }

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
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d rootDisk) Rename(from, to string) error { return d.root.Rename(from, to) }

func (d rootDisk) Remove(name string) error { return d.root.Remove(name) }

func (d rootDisk) Sync() error { return syncDir(d.root) }

// open opens a regular file and nothing else: no link, and no pipe, which could keep us waiting.
func (d rootDisk) open(name string, flags int) (file, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, irregular(name, before)
	}
	f, err := d.root.OpenFile(name, flags|nonblock, 0)
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
	return fmt.Errorf("open %s: it is no regular file: %v", name, fi.Mode())
}
