package journal

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
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
	Sinks           []SinkStats
	// Kinds has what the kinds take, the largest first.
	Kinds []KindStats
	// Copies are those from before a migration, which lie beside the file.
	Copies []Copy
	// Uncovered is what other redaction rules made.
	Uncovered Uncovered
}

// KindStats is what a kind takes, under all its versions.
type KindStats struct {
	GroupResource string
	// Changes are its, Quiet among them; ChangesSize is what their contents take, in bytes.
	Changes, Quiet, ChangesSize int64
	// Live objects, and what all its objects' last states take.
	Live, StatesSize int64
}

// SinkStats is a sink and how far behind it is.
type SinkStats struct {
	Sink
	// Behind is how many changes come after the cursor, quiet ones not counted: what a sink's filter
	// leaves of them is not known.
	Behind int64
}

// Stats counts; it reads all changes' columns, some seconds for a million.
func (r *Reader) Stats(ctx context.Context) (Stats, error) {
	s := Stats{Path: r.path, Cluster: r.cluster}
	err := r.do(ctx, func() error {
		s.Format = r.db.format
		counts := []struct {
			sql string
			to  *int64
		}{
			{"SELECT count(*) FROM changes WHERE object IS NULL AND op = " + strconv.Itoa(opNumber(event.Gap)), &s.Gaps},
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
		if err := r.db.sinkStats(&s); err != nil {
			return err
		}
		if err := r.db.kindStats(&s); err != nil {
			return err
		}
		if r.db.format >= 2 {
			if s.Uncovered, err = r.db.uncovered(); err != nil {
				return err
			}
		}
		return r.db.streams("ORDER BY resource, namespace, selection", nil, func(_ int64, sh StreamHead) { s.Streams = append(s.Streams, sh) })
	})
	if err != nil {
		return Stats{}, err
	}
	if s.Copies, err = Copies(r.path); err != nil {
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

func (db *db) sinkStats(to *Stats) error {
	known, err := db.sinks()
	for _, s := range known {
		if err != nil {
			return err
		}
		all := SinkStats{Sink: s}
		if s.HasCursor {
			all.Behind, err = db.integer("SELECT count(*) FROM changes WHERE seq > ? AND NOT quiet", s.Cursor)
		}
		to.Sinks = append(to.Sinks, all)
	}
	return err
}

// kindStats sums up by kind, in one pass over the changes and one over the objects.
func (db *db) kindStats(to *Stats) error {
	kinds := map[string]*KindStats{}
	of := func(name string) *KindStats {
		if kinds[name] == nil {
			kinds[name] = &KindStats{GroupResource: name}
		}
		return kinds[name]
	}
	err := db.query(`SELECT s.s, n, quiet, size FROM
		(SELECT kind of, count(*) n, total(quiet) quiet, total(length(before)) + total(length(after)) size FROM changes GROUP BY kind)
		LEFT JOIN kinds k ON k.id = of LEFT JOIN strings s ON s.id = k.resource`, nil, func(s *sqlite3.Stmt) error {
		k := of(s.ColumnText(0))
		k.Changes += s.ColumnInt64(1)
		k.Quiet += s.ColumnInt64(2)
		k.ChangesSize += s.ColumnInt64(3)
		to.Changes += s.ColumnInt64(1)
		to.Quiet += s.ColumnInt64(2)
		return nil
	})
	if err != nil {
		return err
	}
	err = db.query(`SELECT s.s, live, size FROM
		(SELECT resource of, count(stream) live, total(length(content)) size FROM objects GROUP BY resource)
		LEFT JOIN strings s ON s.id = of`, nil, func(s *sqlite3.Stmt) error {
		k := of(s.ColumnText(0))
		k.Live += s.ColumnInt64(1)
		k.StatesSize += s.ColumnInt64(2)
		return nil
	})
	to.Kinds = slices.SortedFunc(func(yield func(KindStats) bool) {
		for _, k := range kinds {
			if !yield(*k) {
				return
			}
		}
	}, func(a, b KindStats) int {
		return cmp.Or(cmp.Compare(b.ChangesSize+b.StatesSize, a.ChangesSize+a.StatesSize), cmp.Compare(a.GroupResource, b.GroupResource))
	})
	return err
}
