package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Size is the part of Stats that takes no time to get.
type Size struct {
	// First and Last are the sequence numbers of the oldest and the newest change; Oldest and Newest are when they were
	// seen. All are zero if there are no changes.
	First, Last    int64
	Oldest, Newest time.Time
	// Cut is when the newest of the listed changes was seen that were removed because the file was too big: only from then
	// on is the history whole. It is zero if there are none. CutNamespace is that change's namespace, and CutCluster the
	// cluster (as in Kind); both are empty for an object without a namespace, or if nothing of the namespace is left.
	Cut                      time.Time
	CutCluster, CutNamespace string
	// Used and Free are bytes of the file; Log is the size of the write-ahead log.
	Used, Free, Log int64
}

// Size reads the ends of the journal and counts nothing.
func (r *Reader) Size(ctx context.Context) (s Size, err error) {
	err = r.do(ctx, func() error {
		s, err = r.size()
		return err
	})
	return s, err
}

func (r *Reader) size() (s Size, err error) {
	for _, end := range []struct {
		order string
		seq   *int64
		at    *time.Time
	}{{"ASC", &s.First, &s.Oldest}, {"DESC", &s.Last, &s.Newest}} {
		err := r.db.query("SELECT seq, time + lag FROM changes ORDER BY seq "+end.order+" LIMIT 1", nil, func(st *sqlite3.Stmt) error {
			*end.seq, *end.at = st.ColumnInt64(0), columnTime(st, 1)
			return nil
		})
		if err != nil {
			return Size{}, err
		}
	}
	if err := r.db.cut(&s); err != nil {
		return Size{}, err
	}
	pages, free, size, err := r.db.pages()
	if err != nil {
		return Size{}, err
	}
	s.Used, s.Free = (pages-free)*size, free*size
	fi, err := os.Stat(r.path + "-wal")
	switch {
	case err == nil:
		s.Log = fi.Size()
	case !errors.Is(err, fs.ErrNotExist):
		return Size{}, err
	}
	return s, nil
}

// cut reads what noteCut wrote.
func (db *db) cut(to *Size) error {
	at, namespace := int64(0), int64(0)
	err := db.query("SELECT value FROM meta WHERE key = ?", []any{cutKey}, func(s *sqlite3.Stmt) error {
		_, err := fmt.Sscan(s.ColumnText(0), &at, &namespace)
		return err
	})
	if err != nil || at == 0 {
		return err
	}
	to.Cut = time.UnixMilli(at).UTC()
	to.CutCluster, to.CutNamespace, err = db.namespace(namespace)
	return err
}

// SeenAfter returns when the first change after a sequence number was seen; zero without one.
func (r *Reader) SeenAfter(ctx context.Context, seq int64) (at time.Time, err error) {
	err = r.do(ctx, func() error {
		return r.db.query("SELECT time + lag FROM changes WHERE seq > ? ORDER BY seq LIMIT 1", []any{seq}, func(st *sqlite3.Stmt) error {
			at = columnTime(st, 0)
			return nil
		})
	})
	return at, err
}

// SeqAt returns the sequence number before the first change that was seen at t or later: the cursor of a replay from t.
func (r *Reader) SeqAt(ctx context.Context, t time.Time) (seq int64, err error) {
	err = r.do(ctx, func() error {
		first, err := r.db.seenFrom(t.UnixMilli())
		if seq = first - 1; err != nil || first > 0 {
			return err
		}
		tail, err := r.db.tail()
		seq = tail.next() - 1
		return err
	})
	return seq, err
}

// seenFrom returns the first change seen at a time or later; 0 without one.
func (db *db) seenFrom(at int64) (seq int64, err error) {
	low, err := db.reaching(at)
	if err != nil {
		return 0, err
	}
	err = db.query("SELECT first, first + size FROM blocks WHERE first >= ? AND seen_newest >= ? ORDER BY first", []any{low, at}, func(s *sqlite3.Stmt) error {
		seq, err = db.integer("SELECT seq FROM changes WHERE seq >= ? AND seq < ? AND time + lag >= ? ORDER BY seq LIMIT 1", s.ColumnInt64(0), s.ColumnInt64(1), at)
		if err == nil && seq > 0 {
			err = errDone
		}
		return err
	})
	return seq, err
}

// Sinks is like Journal.Sinks.
func (r *Reader) Sinks(ctx context.Context) (all []Sink, err error) {
	err = r.do(ctx, func() error {
		all, err = r.db.sinks()
		return err
	})
	return all, err
}

// DeadLetters is like Journal.DeadLetters, without bodies.
func (r *Reader) DeadLetters(ctx context.Context, sink string) (all []DeadLetter, err error) {
	err = r.do(ctx, func() error {
		return r.db.query("SELECT seq, change, reason, attempts, at FROM dead WHERE sink = ? ORDER BY id", []any{sink}, func(s *sqlite3.Stmt) error {
			all = append(all, DeadLetter{
				Sink: sink, Seq: s.ColumnInt64(0), ID: s.ColumnText(1), Reason: s.ColumnText(2), Attempts: s.ColumnInt(3), At: columnTime(s, 4),
			})
			return nil
		})
	})
	return all, err
}
