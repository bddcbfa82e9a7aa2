package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

const (
	// CopyAge is how long Retain keeps the copy from before a migration.
	CopyAge = 7 * 24 * time.Hour
	// migrationLog is what the log of a migration may take on the disk, beside the copy.
	migrationLog = 2 * walPages * 4096
)

// Copy is a journal as it was before a migration: a whole journal of an older format, which Restore puts back for the
// program that wrote it. The next migration replaces it, Retain removes it after CopyAge or when the disk is full, and
// Purge removes it.
type Copy struct {
	Path string
	Size int64
	At   time.Time
}

// copyPath is where the copy from before a migration is kept. The name has the format to which the journal was migrated.
func copyPath(path string, format int) string { return fmt.Sprintf("%s.before-v%d", path, format) }

// Copies returns the copies from before migrations of a journal: one, or none.
func Copies(path string) (all []Copy, err error) {
	if path, err = realPath(path); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		format, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".before-v")
		if _, err := strconv.ParseUint(format, 10, 32); !ok || err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		all = append(all, Copy{Path: filepath.Join(filepath.Dir(path), e.Name()), Size: info.Size(), At: info.ModTime()})
	}
	return all, nil
}

// removeCopies removes the copies that were made before a time, all if it is zero, with what programs that read them
// left beside them, but not the one at keep. It returns what it removed.
func removeCopies(path string, before time.Time, keep string) (removed []Copy, err error) {
	all, err := Copies(path)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.Path == keep || !before.IsZero() && !c.At.Before(before) {
			continue
		}
		if err := removeDB(c.Path); err != nil {
			return removed, err
		}
		removed = append(removed, c)
	}
	if len(removed) == 0 {
		return nil, nil
	}
	return removed, syncDir(filepath.Dir(path))
}

// update brings the file to the newest format, behind a copy of it.
func (j *Journal) update(ctx context.Context, o Options) error {
	if j.db.format == len(migrations) {
		return nil
	}
	tell := func(text string, args ...any) {
		if o.Migrating != nil {
			o.Migrating(fmt.Sprintf(text, args...))
		}
	}
	defer tell("")
	if !o.NoCopy {
		tell("copying the journal before its migration to format %d", len(migrations))
		if err := j.keepCopy(ctx); err != nil {
			return orElse(ctx.Err(), err)
		}
	}
	tell("migrating the journal from format %d to %d", j.db.format, len(migrations))
	if err := j.db.migrate(ctx, ""); err != nil {
		return orElse(ctx.Err(), err)
	}
	return nil
}

// keepCopy makes the copy, and removes older ones: first, where there is no room for both.
func (j *Journal) keepCopy(ctx context.Context) error {
	failed := &CopyError{Path: j.path, Copy: copyPath(j.path, len(migrations))}
	tight, err := j.roomForCopy(failed)
	if err == nil && tight {
		if err = j.db.readPages(ctx); err == nil { // a damaged journal cannot be copied: the older copy stays
			_, err = removeCopies(j.path, time.Time{}, "")
		}
	}
	if err == nil {
		_, err = j.db.copyTo(ctx, failed.Copy, nil)
	}
	if err == nil {
		_, err = removeCopies(j.path, time.Time{}, failed.Copy)
	}
	if err == nil || errors.Is(err, failed) {
		return err
	}
	failed.Damaged, failed.Err = isDamage(err), err
	return failed
}

// roomForCopy reports whether there is room for the copy only without older ones. Where there is too little without
// them, it returns the error that says so.
func (j *Journal) roomForCopy(failed *CopyError) (tight bool, err error) {
	pages, _, size, err := j.db.pages()
	if err != nil {
		return false, err
	}
	older, err := Copies(j.path)
	if err != nil {
		return false, err
	}
	need := pages*size + migrationLog
	free, known := freeSpace(filepath.Dir(j.path))
	if !known {
		return len(older) > 0, nil
	}
	tight = free < need
	for _, c := range older {
		free += c.Size
	}
	if free < need {
		failed.Need, failed.Free = need, free
		return false, failed
	}
	return tight, nil
}

// readPages reads all of the file, and returns an error where it is damaged.
func (db *db) readPages(ctx context.Context) error {
	old := db.c.SetInterrupt(ctx)
	defer db.c.SetInterrupt(old)
	return db.query("PRAGMA quick_check(1)", nil, func(s *sqlite3.Stmt) error {
		if text := s.ColumnText(0); text != "ok" {
			return fmt.Errorf("%s: %w", text, sqlite3.CORRUPT)
		}
		return nil
	})
}

// migrate brings the file to the newest format, in one transaction. A file that had none is of that cluster.
func (db *db) migrate(ctx context.Context, cluster string) error {
	from := db.format
	err := db.transaction(func() error {
		old := db.c.SetInterrupt(ctx)
		defer db.c.SetInterrupt(old) // the end of a transaction is not to be interrupted
		for n := from; n < len(migrations); n++ {
			if err := db.script(migrations[n]); err != nil {
				return fmt.Errorf("migrate to format %d: %w", n+1, err)
			}
		}
		if from == 0 {
			if err := db.exec("INSERT INTO meta VALUES ('cluster', ?)", cluster); err != nil {
				return err
			}
		}
		return db.script(fmt.Sprintf("PRAGMA user_version = %d", len(migrations)))
	})
	if err == nil {
		db.format = len(migrations)
	}
	return err
}
