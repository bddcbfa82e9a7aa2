package journal

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Stats describes a journal.
type Stats struct {
	Path, Cluster string
	// Format is the file's format.
	Format int
	// Changes counts all changes; Quiet and Gaps are among them.
	Changes, Quiet, Gaps int64
	// Objects counts those with a history or a state; Live those with a state.
	Objects, Live int64
	Size
	Streams []StreamHead
	Sinks   []SinkStats
	// Kinds lists what each kind takes, largest first.
	Kinds []KindStats
	// Uncovered is what was recorded under other redaction rules.
	Uncovered Uncovered
}

// KindStats is what a kind takes, all its versions together.
type KindStats struct {
	GroupResource, Cluster string // Cluster is as in Kind
	// Changes counts its changes, Quiet the quiet ones among them; ChangesSize is the size of their contents in bytes.
	Changes, Quiet, ChangesSize int64
	// Live counts live objects; StatesSize is the size of the last states in bytes.
	Live, StatesSize int64
}

// SinkStats is a sink and its lag.
type SinkStats struct {
	Sink
	// Behind counts the listed changes after the cursor, before the sink's filter.
	Behind int64
}

// Stats counts. It reads all changes' columns: some seconds for a million changes.
func (r *Reader) Stats(ctx context.Context) (Stats, error) {
	s := Stats{Path: r.path, Cluster: r.cluster}
	err := r.do(ctx, func() error {
		version, err := r.db.integer("PRAGMA user_version")
		if err != nil {
			return err
		}
		s.Format = int(version)
		counts := []struct {
			sql string
			to  *int64
		}{
			{"SELECT count(*) FROM changes WHERE object IS NULL AND op = " + strconv.Itoa(opNumber(event.Gap)), &s.Gaps},
			{"SELECT count(*) FROM objects", &s.Objects},
			{"SELECT count(*) FROM live", &s.Live},
		}
		for _, c := range counts {
			n, err := r.db.integer(c.sql)
			if err != nil {
				return err
			}
			*c.to = n
		}
		if s.Size, err = r.size(); err != nil {
			return err
		}
		if err := r.db.sinkStats(&s); err != nil {
			return err
		}
		if err := r.db.kindStats(&s); err != nil {
			return err
		}
		if s.Uncovered, err = r.db.uncovered(); err != nil {
			return err
		}
		return r.db.streams(byName, nil, func(_ int64, sh StreamHead) { s.Streams = append(s.Streams, sh) })
	})
	if err != nil {
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
	all, err := db.resources(nil, nil)
	if err != nil {
		return err
	}
	kinds := map[int64]*KindStats{}
	of := func(resource int64) *KindStats {
		if kinds[resource] == nil {
			kinds[resource] = &KindStats{}
		}
		return kinds[resource]
	}
	err = db.query(`SELECT k.resource, n, quiet, size FROM
		(SELECT kind of, count(*) n, total(quiet) quiet, total(length(before)) + total(length(after)) size FROM changes c LEFT JOIN contents t ON t.seq = c.seq GROUP BY kind)
		LEFT JOIN kinds k ON k.id = of`, nil, func(s *sqlite3.Stmt) error {
		k := of(s.ColumnInt64(0))
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
	err = db.query("SELECT resource, count(*), total(length(content)) FROM live JOIN objects o ON o.id = object GROUP BY resource", nil, func(s *sqlite3.Stmt) error {
		k := of(s.ColumnInt64(0))
		k.Live += s.ColumnInt64(1)
		k.StatesSize += s.ColumnInt64(2)
		return nil
	})
	for _, r := range all {
		if k := kinds[r.id]; k != nil {
			k.GroupResource, k.Cluster = r.name, r.cluster
		}
	}
	to.Kinds = slices.SortedFunc(func(yield func(KindStats) bool) {
		for _, k := range kinds {
			if !yield(*k) {
				return
			}
		}
	}, func(a, b KindStats) int {
		return cmp.Or(cmp.Compare(b.ChangesSize+b.StatesSize, a.ChangesSize+a.StatesSize), cmp.Compare(a.GroupResource, b.GroupResource), cmp.Compare(a.Cluster, b.Cluster))
	})
	return err
}
