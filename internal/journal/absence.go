package journal

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Keys in meta: absentKey of the moment since which nothing was recorded, while that has not been written as an
// absence; absenceKey of the end of the last one that was.
const (
	absentKey  = "absent"
	absenceKey = "absence"
)

// AbsentSince returns since when nothing was recorded: since NoteAbsent was called or, where the process was killed,
// since anything was recorded last. It is zero for a new journal. Until the absence is appended, later calls return the
// same.
func (j *Journal) AbsentSince(ctx context.Context) (since time.Time, err error) {
	err = j.write(ctx, "write", func() error {
		since = time.Time{}
		const newest = `SELECT ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?),
			max((SELECT max(at) FROM streams), ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?), 0)))`
		err := j.db.query(newest, []any{absentKey, absenceKey}, func(s *sqlite3.Stmt) error {
			if s.ColumnType(0) != sqlite3.NULL {
				since = time.UnixMilli(s.ColumnInt64(0)).UTC()
			}
			return nil
		})
		if err != nil || since.IsZero() {
			return err
		}
		return j.db.noteAbsent(since)
	})
	return since, err
}

// NoteAbsent notes that nothing is recorded from now on, unless an absence that began earlier is not over.
func (j *Journal) NoteAbsent(ctx context.Context, now time.Time) error {
	return j.write(ctx, "write", func() error { return j.db.noteAbsent(now) })
}

func (db *db) noteAbsent(since time.Time) error {
	return db.exec("INSERT OR IGNORE INTO meta VALUES (?, ?)", absentKey, strconv.FormatInt(since.UnixMilli(), 10))
}

// absence writes an absence, which is over with it.
func (w *writer) absence(kind int64, r *Row) error {
	ns, err := w.names.id("")
	if err != nil {
		return err
	}
	if err := w.db.exec("DELETE FROM meta WHERE key = ?", absentKey); err != nil {
		return err
	}
	if err := w.db.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", absenceKey, strconv.FormatInt(r.At.UnixMilli(), 10)); err != nil {
		return err
	}
	err = w.db.exec("INSERT INTO gaps VALUES (?, ?, ?, ?, ?)", w.tail.next(), ns,
		strconv.FormatInt(r.Absence.Changes, 10), strconv.FormatInt(r.Absence.Incomplete, 10), r.Absence.Reason)
	if err != nil {
		return err
	}
	return w.insert(r, kind, nil, nil, nil, nil)
}

// absenceOf undoes absence.
func absenceOf(c *record) (*event.Absence, error) {
	changes, err := strconv.ParseInt(c.gapFrom, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("number of changes: %w", err)
	}
	incomplete, err := strconv.ParseInt(c.gapTo, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("number of incomplete collections: %w", err)
	}
	return &event.Absence{Reason: c.gapText, Changes: changes, Incomplete: incomplete}, nil
}
