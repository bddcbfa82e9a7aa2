package journal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// magic is what a SQLite file begins with.
var magic = []byte("SQLite format 3\x00")

// makeFiles makes the files that lack. SQLite would make those beside the first readable for others,
// so they are made here, and never removed; see openDB.
func makeFiles(path string) error {
	if err := checkMagic(path); err != nil {
		return err
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		f, err := os.OpenFile(path+end, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMagic keeps what is no SQLite file from being touched. None, or an empty one, is none yet.
func checkMagic(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	switch {
	case n == 0 && err == io.EOF: //nolint:errorlint // ReadFull returns it as it is
		return nil
	case err != nil && n == 0:
		return err
	case !bytes.Equal(head, magic):
		return &FormatError{path, "it is no SQLite file"}
	}
	return nil
}

// place makes a path absolute; the error is fs.ErrNotExist where there is no such file.
func place(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	_, err = os.Stat(path)
	return path, err
}
