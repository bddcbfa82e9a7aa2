package journal

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Query selects changes. The zero value selects all but quiet changes and snapshots, newest first. An empty list
// selects everything.
type Query struct {
	// After and Before are sequence numbers, exclusive; 0 is no limit.
	After, Before int64
	// Since (inclusive) and Until (exclusive) bound when a change happened. Where only an interval is known, a change
	// matches if some moment of it does.
	Since, Until time.Time
	// Resources are group-resources such as deployments.apps. Namespaces are names or globs (path.Match); a gap of the
	// whole cluster belongs to every namespace.
	Resources, Namespaces []string
	// Clusters are names of clusters. An absence belongs to one.
	Clusters []string
	// Names and UID select objects; gaps then never match.
	Names []string
	UID   string
	// Owned maps a group-resource to those that its objects own. With Names, the objects that the named ones own,
	// directly or not, are selected as well.
	Owned    map[string][]string
	Ops      []event.Op
	Managers []string // names, or globs
	// Quiet and Snapshots include those.
	Quiet, Snapshots bool
	OldestFirst      bool
	// Limit bounds the number of entries; 0 is no limit.
	Limit int
}

// filter is a query by the file's numbers.
type filter struct {
	q          Query
	low, high  int64          // sequence numbers, inclusive
	clusters   map[int64]bool // the kinds of the wanted clusters
	kinds      map[int64]bool
	namespaces map[int64]bool
	managers   map[int64]bool
	ops        uint64   // a bit per wanted operation
	nowhere    int64    // the number of the empty namespace
	objects    []object // those with a name or UID
	byObject   bool
	since      int64
	until      int64 // exclusive; 0: no limit

	sql  string // conditions of wants that SQLite checks first, which costs less than to read a row; see narrow
	args []any
}

// filter resolves the names in a query. Names that the journal has never seen match nothing.
func (db *db) filter(q Query) (*filter, error) {
	f := &filter{q: q, low: q.After + 1, high: q.Before - 1, ops: wantedOps(q)}
	if q.Before == 0 {
		f.high = 1<<63 - 1
	}
	if !q.Since.IsZero() {
		f.since = q.Since.UnixMilli()
	}
	if !q.Until.IsZero() {
		f.until = q.Until.UnixMilli()
	}
	resources, err := db.stored(withOwned(q), q.Clusters)
	if err != nil {
		return nil, err
	}
	if f.clusters, err = db.kindsWithin(q.Clusters); err != nil {
		return nil, err
	}
	if f.kinds, err = db.ids(resources, "SELECT k.id FROM strings s JOIN kinds k ON k.resource = s.id WHERE s.s = ?"); err != nil {
		return nil, err
	}
	if f.namespaces, err = db.matching(q.Namespaces); err != nil {
		return nil, err
	}
	if f.nowhere, err = db.integer("SELECT id FROM strings WHERE s = ''"); err != nil {
		return nil, err
	}
	if f.managers, err = db.managers(q.Managers); err != nil {
		return nil, err
	}
	f.narrow()
	if len(q.Names) == 0 && q.UID == "" {
		return f, nil
	}
	f.byObject = true
	if f.objects, err = db.named(q, f.namespaces); err != nil || len(q.Owned) == 0 {
		return f, err
	}
	owned, err := db.owned(q, f.namespaces, f.objects)
	f.objects = append(f.objects, owned...)
	return f, err
}

// narrow makes the conditions. Lists of up to fewIDs numbers are conditions, padded to that length: few statements serve
// all queries.
func (f *filter) narrow() {
	if !f.q.Quiet {
		f.sql = " AND NOT c.quiet"
	}
	oneOf := func(ids map[int64]bool, condition string) {
		if len(ids) == 0 || len(ids) > fewIDs {
			return
		}
		f.sql += fmt.Sprintf(condition, "IN (?"+strings.Repeat(", ?", fewIDs-1)+")")
		list := slices.Sorted(maps.Keys(ids))
		for i := range fewIDs {
			f.args = append(f.args, list[min(i, len(list)-1)])
		}
	}
	oneOf(f.kinds, " AND (c.object IS NULL OR c.kind %s)") // an absence belongs to every kind and namespace
	oneOf(f.managers, " AND c.manager %s")
	oneOf(f.namespaces, " AND (c.object IS NULL OR o.namespace %s)")
}

// fewIDs is how many numbers a condition lists.
const fewIDs = 4

// withOwned returns the resources that a query names and those that their objects own.
func withOwned(q Query) []string {
	if len(q.Resources) == 0 || len(q.Names) == 0 {
		return q.Resources
	}
	all := slices.Clone(q.Resources)
	for i := 0; i < len(all); i++ {
		for _, r := range q.Owned[all[i]] {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

// matching returns the numbers of the strings that match a pattern; nil if there are no patterns.
func (db *db) matching(patterns []string) (map[int64]bool, error) {
	if !slices.ContainsFunc(patterns, func(p string) bool { return strings.ContainsAny(p, `*?[\`) }) {
		return db.ids(patterns, "SELECT id FROM strings WHERE s = ?")
	}
	ids := map[int64]bool{}
	err := db.query("SELECT id, s FROM strings", nil, func(s *sqlite3.Stmt) error {
		for _, p := range patterns {
			ok, err := path.Match(p, s.ColumnText(1))
			if err != nil {
				return fmt.Errorf("match names with %q: %w", p, err)
			}
			if ok {
				ids[s.ColumnInt64(0)] = true
			}
		}
		return nil
	})
	return ids, err
}

// managers is matching for managers. A lone ? is the name of an unknown manager, not a glob.
func (db *db) managers(patterns []string) (map[int64]bool, error) {
	if !slices.ContainsFunc(patterns, func(p string) bool { return p != "?" && strings.ContainsAny(p, `*?[\`) }) {
		return db.ids(patterns, "SELECT id FROM strings WHERE s = ?")
	}
	return db.matching(patterns)
}

// wantedOps returns a bit for each operation that a query wants.
func wantedOps(q Query) (bits uint64) {
	for n, op := range ops {
		switch {
		case n == 0, len(q.Ops) > 0 && !slices.Contains(q.Ops, op), len(q.Ops) == 0 && op == event.Snapshot && !q.Snapshots:
		default:
			bits |= 1 << n
		}
	}
	return bits
}

// ids returns the numbers that sql yields for each name; nil if there are no names.
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

// named returns the objects with one of the query's names and its UID, each with its newest change.
func (db *db) named(q Query, namespaces map[int64]bool) (objects []object, err error) {
	resources, err := db.resources(q.Resources, q.Clusters)
	names := slices.Compact(slices.Sorted(slices.Values(q.Names)))
	each := func(where string, args ...any) {
		if err != nil {
			return
		}
		err = db.query("SELECT id, last, uid, name, namespace FROM objects WHERE "+where, args, func(s *sqlite3.Stmt) error {
			switch {
			case q.UID != "" && (q.UID != s.ColumnText(2) || len(names) > 0 && !slices.Contains(names, s.ColumnText(3))):
			case namespaces != nil && !namespaces[s.ColumnInt64(4)]:
			default:
				objects = append(objects, object{id: s.ColumnInt64(0), last: s.ColumnInt64(1)})
			}
			return nil
		})
	}
	for _, resource := range resources {
		if q.UID != "" {
			each("resource = ? AND uid = ?", resource, q.UID)
			continue
		}
		for _, name := range names {
			if namespaces == nil {
				each("name = ? AND resource = ?", name, resource)
			}
			for namespace := range namespaces {
				each("name = ? AND resource = ? AND namespace = ?", name, resource, namespace)
			}
		}
	}
	return objects, err
}

// resources returns the numbers of group-resources in some clusters; all of them if none is named.
func (db *db) resources(names, clusters []string) (ids []int64, err error) {
	add := func(s *sqlite3.Stmt) error {
		ids = append(ids, s.ColumnInt64(0))
		return nil
	}
	if len(names) == 0 && len(clusters) == 0 {
		err = db.query("SELECT DISTINCT resource FROM kinds", nil, add)
		return ids, err
	}
	if len(names) == 0 {
		keys, err := db.within(clusters)
		for _, key := range keys {
			if err == nil {
				err = db.query("SELECT DISTINCT resource FROM kinds WHERE "+ofCluster("plural"), []any{key}, add)
			}
		}
		return ids, err
	}
	stored, err := db.stored(names, clusters)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(stored))) {
		if err := db.query("SELECT id FROM strings WHERE s = ?", []any{name}, add); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// mayHave reports whether a block can have a change that matches.
func (f *filter) mayHave(b *block) bool {
	switch {
	case b.next() <= f.low || b.first > f.high:
		return false
	case f.since != 0 && b.newest < f.since || f.until != 0 && b.oldest >= f.until:
		return false
	case !among(f.clusters, b.sum.kinds):
		return false
	case f.ops&b.sum.ops&absentBit != 0 && f.managers == nil:
		return true
	case !f.q.Quiet && (b.listed == 0 || f.kinds != nil && !b.kinds.has(f.kinds)):
		return false
	default:
		gaps := f.ops&b.sum.ops&gapBit != 0
		return f.ops&b.sum.ops != 0 && among(f.kinds, b.sum.kinds) && (gaps || among(f.namespaces, b.sum.namespaces)) && among(f.managers, b.sum.managers)
	}
}

// The bits of gaps and absences among operations.
var (
	gapBit    = uint64(1) << opNumber(event.Gap)
	absentBit = uint64(1) << opNumber(event.Absent)
)

// among reports whether a set may hold a wanted number; nil wants all.
func among(wanted map[int64]bool, s set) bool { return wanted == nil || s.has(wanted) }

// wants reports whether a record matches.
func (f *filter) wants(r *record) bool {
	from, to := r.span()
	op := opOf(r.op)
	absent := op == event.Absent // belongs to every kind and namespace
	switch {
	case r.quiet && !f.q.Quiet,
		op != "" && f.ops>>r.op&1 == 0, // an unknown operation is damage, which the caller reports
		f.clusters != nil && !f.clusters[r.kind],
		f.kinds != nil && !f.kinds[r.kind] && !absent,
		f.managers != nil && !f.managers[r.manager],
		f.namespaces != nil && !f.namespaces[r.namespace] && !(op == event.Gap && r.namespace == f.nowhere) && !absent,
		f.since != 0 && to < f.since,
		f.until != 0 && from >= f.until:
		return false
	default:
		return true
	}
}
