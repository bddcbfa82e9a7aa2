package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/internal/syncdir"
)

// backupPages is how many pages a backup copies between checks of the context.
const backupPages = 512

// Backup copies a journal, as of one moment, to a new file; a daemon may keep writing. Until the copy is complete, and if
// the program is killed, only to.partial exists. progress, if not nil, receives the number of copied pages. Backup returns
// the file's size in bytes.
func Backup(ctx context.Context, path, to string, progress func(done, total int64)) (int64, error) {
	path, err := place(path)
	if err == nil {
		to, err = filepath.Abs(to)
	}
	if err != nil {
		return 0, fmt.Errorf("back up journal: %w", err)
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("back up journal: %w", orElse(err, &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}))
	}
	db, err := openDB(path, "PRAGMA busy_timeout = 5000; PRAGMA query_only = ON; PRAGMA cache_size = -8192")
	if err != nil {
		return 0, classify("back up", path, err)
	}
	size, err := db.copyTo(ctx, to, progress)
	if err = orElse(err, db.close()); err != nil {
		return 0, classify("back up", path, err)
	}
	return size, nil
}

// copyTo copies the file to a path, where it appears once it is complete and survives a power failure.
func (db *db) copyTo(ctx context.Context, to string, progress func(done, total int64)) (size int64, err error) {
	if err := db.checkFormat(); err != nil {
		return 0, err
	}
	partial := to + ".partial"
	if err := removeDB(partial); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	err = makeSums(partial)
	if err == nil {
		err = db.copyPages(ctx, partial, progress)
	}
	if err != nil {
		if err = noteFull(partial, err); errors.Is(err, ErrFull) { // perhaps another disk than the journal's
			err = fmt.Errorf("write %s: %w", partial, err)
		}
		return 0, errors.Join(err, f.Close(), removeDB(partial))
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close()) // Windows does not rename open files
	// Another backup to the same file removes this one's partial file and writes its own under the same name.
	if now, lerr := os.Lstat(partial); err == nil && (lerr != nil || !os.SameFile(info, now)) {
		return 0, fmt.Errorf("another program writes %s", partial)
	}
	if err == nil {
		err = removeLogs(partial)
	}
	if err == nil {
		err = os.Rename(partial, to)
	}
	if err != nil {
		return 0, errors.Join(err, removeDB(partial))
	}
	return info.Size(), syncdir.Sync(filepath.Dir(to))
}

// makeSums makes an empty file whose pages get checksums. SQLite writes them only where the file's header says so, and
// writes the header of a large copy last: pages that come from the log, without checksums, would get none.
func makeSums(path string) error {
	db, err := openDB(path, "")
	if err != nil {
		return err
	}
	return orElse(db.c.EnableChecksums("main"), db.close())
}

// copyPages copies the database as of one moment and verifies the checksum of each page that it reads.
func (db *db) copyPages(ctx context.Context, to string, progress func(done, total int64)) (err error) {
	// A read transaction fixes the moment; without one, a daemon's commit would restart the copy.
	if err := db.script("BEGIN"); err != nil {
		return err
	}
	defer func() { err = orElse(err, db.script("ROLLBACK")) }()
	if _, err := db.integer("SELECT count(*) FROM meta"); err != nil {
		return err
	}
	b, err := db.c.BackupInit("main", to)
	if err != nil {
		return err
	}
	defer func() { err = orElse(err, b.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := b.Step(backupPages)
		if err != nil || done {
			return err
		}
		if progress != nil {
			progress(int64(b.PageCount()-b.Remaining()), int64(b.PageCount()))
		}
	}
}

// Restored is the result of Restore.
type Restored struct {
	// Size is the restored file's size in bytes. Aside is the new path of the journal that was there before; empty if
	// no journal was there.
	Size  int64
	Aside string
}

// Restore replaces a journal with a backup. After it has copied the backup, it moves the old journal and the files beside
// it aside. If the program is killed, nothing is lost and the next Restore resumes. A journal that is open for writing is
// a *LockedError.
func Restore(ctx context.Context, from, path string, now time.Time) (r Restored, err error) {
	if from, err = place(from); err == nil {
		path, err = realPath(path)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return r, fmt.Errorf("restore journal: %w", err)
	}
	lock, err := lockFile(path)
	if err != nil {
		return r, fmt.Errorf("restore journal: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := checkInside(path); err != nil { // it would stay in use under its other name
		return r, fmt.Errorf("restore journal: %w", err)
	}
	next := restoring(path) // a copy from an interrupted restore stays until this one is complete; create looks for it
	if r.Size, err = copyBackup(ctx, from, next); err != nil {
		return r, classify("restore", from, err)
	}
	r.Aside, err = moveAside(path, path+".before-"+now.UTC().Format("20060102T150405Z"))
	if err == nil {
		err = restoreStep(func() error { return os.Rename(next, path) })
	}
	if err == nil {
		err = syncdir.Sync(filepath.Dir(path))
	}
	if err != nil {
		return r, fmt.Errorf("restore journal: %w", err)
	}
	return r, nil
}

// restoring is the path of the backup's copy until the old journal is moved aside.
func restoring(path string) string { return path + ".restoring" }

// copyBackup copies a backup without creating files beside it.
func copyBackup(ctx context.Context, from, to string) (int64, error) {
	if info, err := os.Stat(from + "-wal"); err == nil && info.Size() > 0 {
		return 0, &FormatError{from, "its log " + filepath.Base(from) + "-wal lies beside it, so this is a journal, or a copy made while one was written, not a backup; tattler journal backup makes one"}
	}
	if err := checkMagic(from); err != nil {
		return 0, err
	}
	c, err := sqlite3.OpenFlags("file:"+escapeURI(from)+"?immutable=1", sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	if err != nil {
		return 0, err
	}
	db := &db{c: c, path: from, stmts: map[string]*sqlite3.Stmt{}}
	size, err := db.copyTo(ctx, to, nil)
	return size, orElse(err, db.close())
}

// removeDB removes an unfinished database.
func removeDB(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, removeLogs(path))
}

// removeLogs removes the files beside a database.
func removeLogs(path string) error {
	var errs []error
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Remove(path + end); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// escapeURI escapes a path for a file: URI.
func escapeURI(path string) string { return (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() }
