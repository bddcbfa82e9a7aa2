package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tattler-dev/tattler/internal/syncdir"
)

// journalFiles are the endings of the files that make up a journal.
var journalFiles = []string{"", "-wal", "-shm"}

// restoreStep runs one step of Restore; tests stop there, as a kill would.
var restoreStep = func(do func() error) error { return do() }

// asideNote is the file that holds the name to which a journal's files are being moved. A resumed restore moves the rest
// to the same name: a journal without its log lacks its newest changes.
func asideNote(path string) string { return path + ".aside" }

// moveAside renames a journal and the files beside it, or resumes that, and returns the new name; empty if there was
// nothing to move. The journal goes first: Open refuses a log without it. No file is replaced.
func moveAside(path, to string) (string, error) {
	dir, note := filepath.Dir(path), asideNote(path)
	noted, err := notedAside(path)
	switch {
	case err != nil:
		return "", err
	case noted != "":
		to = noted
	case !existsAny(path):
		return "", nil
	default:
		to = freeAside(to)
		if err := restoreStep(func() error { return writeNote(note, filepath.Base(to)) }); err != nil {
			return "", err
		}
	}
	for _, end := range journalFiles {
		err := restoreStep(func() error { return os.Rename(path+end, to+end) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return to, err
		}
	}
	if err := syncdir.Sync(dir); err != nil { // a power failure must not undo a rename and keep the note's removal
		return to, err
	}
	return to, restoreStep(func() error { return os.Remove(note) })
}

// notedAside returns where an interrupted Restore was moving the journal. It is empty if there is no note, and if another
// journal was made since, which needs another name.
func notedAside(path string) (string, error) {
	b, err := os.ReadFile(asideNote(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	name := string(b)
	if err != nil || filepath.Base(name) != name || !strings.HasPrefix(name, filepath.Base(path)+".before-") {
		return "", orElse(err, fmt.Errorf("%s does not name a file: remove it", asideNote(path)))
	}
	to := filepath.Join(filepath.Dir(path), name)
	for _, end := range journalFiles {
		if exists(path+end) && exists(to+end) {
			return "", nil
		}
	}
	return to, nil
}

// freeAside returns a name that no other journal's file has.
func freeAside(to string) string {
	first := to
	for n := 2; existsAny(to); n++ {
		to = fmt.Sprintf("%s-%d", first, n)
	}
	return to
}

// writeNote writes a small file atomically and syncs it.
func writeNote(path, text string) error {
	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return syncdir.Sync(filepath.Dir(path))
}

// existsAny reports whether a journal has any of its files.
func existsAny(path string) bool {
	for _, end := range journalFiles {
		if exists(path + end) {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
