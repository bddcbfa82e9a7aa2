package journal

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
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
		return j.names.noteAbsent(cluster, since)
	})
	return since, err
}

// recorded is when the last recording of one of clusters ended; NULL if there was none.
const recorded = `ifnull(absent, max((SELECT max(at) FROM streams s JOIN resources r ON r.id = s.resource WHERE r.cluster = clusters.id), ifnull(absence, 0)))`

// recordedUntil returns when the last recording of a cluster ended; zero if there was none.
func (db *db) recordedUntil(cluster string) (at time.Time, err error) {
	id, err := db.clusterID(cluster)
	if err == nil {
		err = db.query("SELECT "+recorded+" FROM clusters WHERE id = ?", []any{id}, func(s *sqlite3.Stmt) error {
			at = columnTime(s, 0)
			return nil
		})
	}
	return at, err
}

// RecordedUntil returns up to when a daemon is known to have recorded some cluster; zero for a new journal.
func (r *Reader) RecordedUntil(ctx context.Context) (at time.Time, err error) {
	err = r.do(ctx, func() error {
		return r.db.query("SELECT max("+recorded+") FROM clusters", nil, func(s *sqlite3.Stmt) error {
			at = columnTime(s, 0)
			return nil
		})
	})
	return at, err
}

// NoteAbsent notes that the recording of a cluster stops now, unless an earlier absence of it is still open, or it was never
// recorded.
func (j *Journal) NoteAbsent(ctx context.Context, cluster string, now time.Time) error {
	return j.write(ctx, "write", func() error { return j.names.noteAbsent(cluster, now) })
}

func (n *names) noteAbsent(cluster string, since time.Time) error {
	id, err := n.cluster(cluster)
	if err != nil {
		return err
	}
	return n.db.exec("UPDATE clusters SET absent = ? WHERE id = ? AND absent IS NULL AND "+recorded+" IS NOT NULL", since, id)
}

// absence writes an absence and closes it.
func (w *writer) absence(kind int64, r *Row) error {
	cluster, err := w.names.cluster(r.Kind.Cluster)
	if err != nil {
		return err
	}
	if err := w.db.exec("UPDATE clusters SET absent = NULL, absence = ? WHERE id = ?", r.At, cluster); err != nil {
		return err
	}
	err = w.db.exec("INSERT INTO gaps VALUES (?, ?, ?, ?)", w.tail.next(),
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
