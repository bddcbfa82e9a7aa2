package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tattler-dev/tattler/internal/syncdir"
)

// magic is the beginning of every SQLite file.
var magic = []byte("SQLite format 3\x00")

// makeFiles creates the missing files of a journal. SQLite would make the log and its index readable for others, so they
// are made here and never removed; see openDB.
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

// unusable adds what to do about a journal whose files a reader cannot open. Readers write, too: they recover the log of a
// daemon that was killed, and lock what they read.
func unusable(path string, err error) error {
	var file *fs.PathError
	if !errors.As(err, &file) {
		return err
	}
	return fmt.Errorf("%w: reading needs the right to write %s and the files beside it: run the command as the daemon's user, or read a backup (tattler journal backup) in a directory that you can write to", err, filepath.Base(path))
}

// create makes a journal if the file does not exist. It appears under its name once it is complete, so that a file without tables
// is never taken for a new journal: that is a truncated copy, or one without its log.
func create(path, cluster string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return &FormatError{path, "the file is missing, but its log " + filepath.Base(path) + "-wal has content: the journal was moved or restored in part; run tattler journal restore again, or move the log away as well"}
	}
	if exists(restoring(path)) {
		return &FormatError{path, "the file is missing, but " + filepath.Base(restoring(path)) + " exists: a restore was interrupted; run tattler journal restore again"}
	}
	next := path + ".new"
	if err := removeDB(next); err != nil {
		return err
	}
	if err := makeFiles(next); err != nil {
		return err
	}
	db, err := openDB(next, "PRAGMA synchronous = FULL")
	if err == nil {
		err = db.prepareFile(true)
		if err == nil {
			err = db.transaction(func() error {
				return orElse(db.script(schema), db.exec("INSERT INTO clusters (id, name) VALUES (?, ?)", ownCluster, cluster))
			})
		}
		if err == nil {
			err = db.truncateLog()
		}
		err = orElse(err, db.close())
	}
	if err == nil {
		err = removeLogs(next)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(noteFull(next, err), removeDB(next))
	}
	return syncdir.Sync(filepath.Dir(path))
}

const (
	// headerSize is the length of SQLite's header. It has the number of bytes at the end of each page that SQLite leaves
	// alone, which is where the checksums of a journal are, and the application's id.
	headerSize                        = 100
	headerReserved, headerApplication = 20, 68
	headerSums                        = 8 // the reserved bytes of a journal
)

// checkMagic returns an error for a file that SQLite did not write, or that is the database of another program, before
// anything touches it or makes files beside it. A damaged header of a journal is left to SQLite, which verifies checksums.
func checkMagic(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headerSize)
	n, err := io.ReadFull(f, head)
	switch {
	case n == 0 && err == io.EOF: //nolint:errorlint // ReadFull returns it unwrapped
		return &FormatError{path, "the file is empty: it may be a truncated copy"}
	case err != nil && n == 0:
		return err
	case !bytes.HasPrefix(head, magic):
		return &FormatError{path, "the file is not a SQLite database: --journal takes the file of a journal"}
	case n == len(head) && head[headerReserved] != headerSums && binary.BigEndian.Uint32(head[headerApplication:]) != applicationID:
		return notJournal(path)
	}
	return nil
}

// place is realPath for a file that must exist; else the error is fs.ErrNotExist.
func place(path string) (string, error) {
	path, err := realPath(path)
	if err != nil {
		return "", err
	}
	_, err = os.Stat(path)
	return path, err
}

// realPath makes a path absolute and resolves a symbolic link to the file. The lock and the log lie beside the file, so
// that a journal with two names has one of each.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSymlink {
		if file, err := filepath.EvalSymlinks(path); err == nil {
			return file, nil
		}
	}
	return path, nil
}
