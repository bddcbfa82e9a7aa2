package journal

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Keys in meta: absentKey is the start of the absence that is not yet written as a change; absenceKey is the end of the
// last one that was. Those of a cluster that the journal is not named after are qualified.
const (
	absentKey  = "absent"
	absenceKey = "absence"
)

// AbsentSince returns the start of the current absence of a cluster (see Kind for its name): when NoteAbsent was called or,
// if the process was killed, when anything was last recorded. It is zero if nothing was. It stays the same until the
// absence is appended.
func (j *Journal) AbsentSince(ctx context.Context, cluster string) (since time.Time, err error) {
	err = j.write(ctx, "write", func() error {
		since, err = j.db.recordedUntil(cluster)
		if err != nil || since.IsZero() {
			return err
		}
		return j.db.noteAbsent(cluster, since)
	})
	return since, err
}

// recordedUntil returns when the last recording of a cluster ended; zero if there was none.
func (db *db) recordedUntil(cluster string) (at time.Time, err error) {
	newest := `SELECT ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?),
		max((SELECT max(at) FROM streams WHERE ` + ofCluster("resource") + `), ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?), 0)))`
	err = db.query(newest, []any{qualify(absentKey, cluster), cluster, qualify(absenceKey, cluster)}, func(s *sqlite3.Stmt) error {
		at = columnTime(s, 0)
		return nil
	})
	return at, err
}

// RecordedUntil returns up to when a daemon is known to have recorded some cluster; zero for a new journal.
func (r *Reader) RecordedUntil(ctx context.Context) (at time.Time, err error) {
	err = r.do(ctx, func() error {
		all, err := r.db.clusters()
		if len(all) == 0 {
			all = []string{""}
		}
		for _, cluster := range all {
			until, err2 := r.db.recordedUntil(cluster)
			if err = cmp.Or(err, err2); until.After(at) {
				at = until
			}
		}
		return err
	})
	return at, err
}

// NoteAbsent notes that the recording of a cluster stops now, unless an earlier absence of it is still open.
func (j *Journal) NoteAbsent(ctx context.Context, cluster string, now time.Time) error {
	return j.write(ctx, "write", func() error { return j.db.noteAbsent(cluster, now) })
}

func (db *db) noteAbsent(cluster string, since time.Time) error {
	return db.exec("INSERT OR IGNORE INTO meta VALUES (?, ?)", qualify(absentKey, cluster), strconv.FormatInt(since.UnixMilli(), 10))
}

// absence writes an absence and closes it.
func (w *writer) absence(kind int64, r *Row) error {
	if err := w.db.exec("DELETE FROM meta WHERE key = ?", qualify(absentKey, r.Kind.Cluster)); err != nil {
		return err
	}
	if err := w.db.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", qualify(absenceKey, r.Kind.Cluster), strconv.FormatInt(r.At.UnixMilli(), 10)); err != nil {
		return err
	}
	err := w.db.exec("INSERT INTO gaps VALUES (?, ?, ?, ?)", w.tail.next(),
		strconv.FormatInt(r.Absence.Changes, 10), strconv.FormatInt(r.Absence.Incomplete, 10), r.Absence.Reason)
	if err != nil {
		return err
	}
	return w.insert(r, kind, nil, nil)
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
