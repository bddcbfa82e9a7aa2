package journal

import (
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Query selects changes; its zero value all that are neither quiet nor snapshots, the newest first. A
// list that is empty selects everything.
type Query struct {
	// After and Before are sequence numbers, exclusive; 0 is no limit.
	After, Before int64
	// Since (inclusive) and Until (exclusive) are of the time when it happened.
	Since, Until time.Time
	// Resources are group-resources, such as deployments.apps.
	Resources, Namespaces []string
	// Name and UID name objects; with one of them there are no gaps.
	Name, UID string
	Ops       []event.Op
	Managers  []string
	// Quiet and Snapshots include those.
	Quiet, Snapshots bool
	OldestFirst      bool
	// Limit is how many are wanted at most; 0 is no limit.
	Limit int
}

// filter is a query in the file's own numbers.
type filter struct {
	q          Query
	low, high  int64 // sequence numbers, inclusive
	kinds      map[int64]bool
	namespaces map[int64]bool
	managers   map[int64]bool
	objects    []int64 // with a name or UID
	byObject   bool
	since      int64
	until      int64 // exclusive; 0 for none
}

// filter looks up what the query names. What the journal has never seen selects nothing.
func (db *db) filter(q Query) (*filter, error) {
	f := &filter{q: q, low: q.After + 1, high: q.Before - 1}
	if q.Before == 0 {
		f.high = 1<<63 - 1
	}
	if !q.Since.IsZero() {
		f.since = q.Since.UnixMilli()
	}
	if !q.Until.IsZero() {
		f.until = q.Until.UnixMilli()
	}
	var err error
	if f.kinds, err = db.ids(q.Resources, "SELECT k.id FROM strings s JOIN kinds k ON k.resource = s.id WHERE s.s = ?"); err != nil {
		return nil, err
	}
	if f.namespaces, err = db.ids(q.Namespaces, "SELECT id FROM strings WHERE s = ?"); err != nil {
		return nil, err
	}
	if f.managers, err = db.ids(q.Managers, "SELECT id FROM strings WHERE s = ?"); err != nil {
		return nil, err
	}
	if q.Name == "" && q.UID == "" {
		return f, nil
	}
	f.byObject = true
	f.objects, err = db.named(q, f.namespaces)
	return f, err
}

// ids returns what sql says of each name; nil if there are no names.
func (db *db) ids(of []string, sql string) (map[int64]bool, error) {
	if len(of) == 0 {
		return nil, nil
	}
	ids := map[int64]bool{}
	for _, name := range of {
		err := db.query(sql, []any{name}, func(s *sqlite3.Stmt) error {
			ids[s.ColumnInt64(0)] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// named returns the objects with the query's name and UID.
func (db *db) named(q Query, namespaces map[int64]bool) (objects []int64, err error) {
	sql, arg := "SELECT o.id, o.namespace, o.name, o.uid, s.s FROM objects o JOIN strings s ON s.id = o.resource WHERE o.name = ?", q.Name
	if q.Name == "" {
		sql, arg = "SELECT o.id, o.namespace, o.name, o.uid, s.s FROM objects o JOIN strings s ON s.id = o.resource WHERE o.uid = ?", q.UID
	}
	err = db.query(sql, []any{arg}, func(s *sqlite3.Stmt) error {
		switch {
		case namespaces != nil && !namespaces[s.ColumnInt64(1)]:
		case q.UID != "" && q.UID != s.ColumnText(3):
		case len(q.Resources) > 0 && !slices.Contains(q.Resources, s.ColumnText(4)):
		default:
			objects = append(objects, s.ColumnInt64(0))
		}
		return nil
	})
	return objects, err
}

// mayHave tells whether a block can have a change that the filter wants.
func (f *filter) mayHave(b *block) bool {
	switch {
	case b.next() <= f.low || b.first > f.high:
		return false
	case f.since != 0 && b.newest < f.since || f.until != 0 && b.oldest >= f.until:
		return false
	case !f.q.Quiet && (b.loud == 0 || f.kinds != nil && !b.hasKind(f.kinds)):
		return false
	default:
		return true
	}
}

// wants looks at a change's own columns; see record.
func (f *filter) wants(r *record) bool {
	op := opOf(r.op)
	switch {
	case r.quiet && !f.q.Quiet,
		op == event.Snapshot && !f.q.Snapshots && !slices.Contains(f.q.Ops, op),
		len(f.q.Ops) > 0 && !slices.Contains(f.q.Ops, op),
		f.kinds != nil && !f.kinds[r.kind],
		f.managers != nil && !f.managers[r.manager],
		f.namespaces != nil && !f.namespaces[r.namespace],
		f.since != 0 && r.time < f.since,
		f.until != 0 && r.time >= f.until:
		return false
	default:
		return true
	}
}
