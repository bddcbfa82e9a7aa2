package journal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Stats describes a journal.
type Stats struct {
	Path, Cluster string
	// Format is how many migrations the file has had.
	Format int
	// Changes are all in the journal; Quiet and Gaps are among them.
	Changes, Quiet, Gaps int64
	// Objects are those with a history or a state; Live those with a state.
	Objects, Live int64
	// First and Last are sequence numbers; Oldest and Newest are when those were seen.
	First, Last    int64
	Oldest, Newest time.Time
	// Used and Free are bytes of the file; Log is the size of the write-ahead log beside it.
	Used, Free, Log int64
	Streams         []StreamHead
	Sinks           []Sink
}

// Stats counts; it reads all changes' columns, about a second for a million.
func (r *Reader) Stats(ctx context.Context) (Stats, error) {
	s := Stats{Path: r.path, Cluster: r.cluster, Format: len(migrations)}
	err := r.do(ctx, func() error {
		counts := []struct {
			sql string
			to  *int64
		}{
			{"SELECT count(*) FROM changes", &s.Changes},
			{"SELECT count(*) FROM changes WHERE quiet", &s.Quiet},
			{"SELECT count(*) FROM gaps", &s.Gaps},
			{"SELECT count(*) FROM objects", &s.Objects},
			{"SELECT count(*) FROM objects WHERE stream IS NOT NULL", &s.Live},
		}
		for _, c := range counts {
			n, err := r.db.integer(c.sql)
			if err != nil {
				return err
			}
			*c.to = n
		}
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
				return err
			}
		}
		pages, free, size, err := r.db.pages()
		if err != nil {
			return err
		}
		s.Used, s.Free = (pages-free)*size, free*size
		if s.Sinks, err = r.db.sinks(); err != nil {
			return err
		}
		return r.db.streams("ORDER BY resource, namespace, selection", nil, func(_ int64, sh StreamHead) { s.Streams = append(s.Streams, sh) })
	})
	if err != nil {
		return Stats{}, err
	}
	fi, err := os.Stat(r.path + "-wal")
	if err == nil {
		s.Log = fi.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Stats{}, err
	}
	return s, nil
}
