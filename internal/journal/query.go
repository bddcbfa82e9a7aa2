package journal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/selection"
)

// Query selects changes and states. A filter compiles it.
type Query = selection.Query

// filter is a query by the file's numbers.
type filter struct {
	q          Query
	low, high  int64          // sequence numbers, inclusive
	clusters   map[int64]bool // the kinds of the wanted clusters
	kinds      map[int64]bool
	namespaces map[int64]bool
	without    map[int64]bool // excluded namespaces, unless namespaces leaves them out
	wide       map[int64]bool // cluster-scoped kinds, whose gaps belong to no namespace
	fields     []field
	managers   map[int64]bool
	ops        uint64         // a bit per wanted operation
	severities uint64         // a bit per wanted severity; 0: all
	nowhere    map[int64]bool // the empty namespaces of the wanted clusters
	objects    []object       // those with a name or UID
	byObject   bool
	scope      *scope // nil: everything is visible
	since      int64
	until      int64 // exclusive; 0: no limit

	sql  string // conditions of wants that SQLite checks first, which costs less than to read a row; see narrow
	args []any
}

// field is a selection.Field by the file's numbers.
type field struct {
	selection.Field
	ids map[int64]bool // of the namespaces of this name
}

// filter resolves the names in a query. Names that the journal has never seen match nothing.
func (db *db) filter(q Query) (*filter, error) {
	f := &filter{q: q, low: q.After + 1, high: q.Before - 1, ops: wantedOps(q), severities: wantedSeverities(q)}
	if q.Before == 0 {
		f.high = 1<<63 - 1
	}
	if !q.Since.IsZero() {
		f.since = q.Since.UnixMilli()
	}
	if !q.Until.IsZero() {
		f.until = q.Until.UnixMilli()
	}
	low, high, err := db.bounded(f.since, f.until)
	if err != nil {
		return nil, err
	}
	if f.low = max(f.low, low); !q.OldestFirst { // changes that come while it is read are behind what was yielded
		f.high = min(f.high, high)
	}
	resources := q.Resources
	if len(resources) > 0 && len(q.Names) > 0 {
		resources = slices.Concat(resources, q.Dependents())
	}
	if f.kinds, err = db.kindsOf(resources, q.Clusters); err != nil {
		return nil, err
	}
	if f.clusters, err = db.ids(q.Clusters, "SELECT k.id FROM kinds k"+ofResources+"WHERE c.name = ?"); err != nil {
		return nil, err
	}
	none := func(name string) bool { return name == "" }
	if f.nowhere, err = db.matching(namespaceRows, q.Clusters, []string{""}, selection.IsGlob, none); err != nil {
		return nil, err
	}
	if err := f.places(db); err != nil {
		return nil, err
	}
	if f.scope, err = db.scope(q.Scope); err == nil {
		err = f.confine(db)
	}
	if err != nil {
		return nil, err
	}
	f.managers, err = db.matching(managerRows, nil, q.Managers, func(p string) bool { return p != "?" && selection.IsGlob(p) },
		func(s string) bool { return selection.MatchesManager(q.Managers, s) })
	if err != nil {
		return nil, err
	}
	f.narrow()
	if len(q.Names) == 0 && q.UID == "" {
		return f, nil
	}
	f.byObject = true
	if f.objects, err = db.named(f); err != nil || len(q.Owned) == 0 || len(q.Names) == 0 {
		return f, err
	}
	owned, err := db.owned(f)
	f.objects = append(f.objects, owned...)
	return f, err
}

// places resolves the namespaces and the fields.
func (f *filter) places(db *db) (err error) {
	within := selection.Namespaces{Include: f.q.Namespaces, Exclude: f.q.Without}
	if len(within.Include) == 0 {
		names := slices.DeleteFunc(slices.Clone(within.Exclude), func(p string) bool { return p == "" }) // it excludes nothing
		f.without, err = db.matching(namespaceRows, f.q.Clusters, names, selection.IsGlob, func(s string) bool { return !within.Has(s) })
	} else {
		f.namespaces, err = db.matching(namespaceRows, f.q.Clusters, within.Include, func(p string) bool { return selection.IsGlob(p) || len(within.Exclude) > 0 }, within.Has)
		f.wide = map[int64]bool{}
	}
	if err == nil && f.wide != nil {
		err = db.query("SELECT id FROM kinds WHERE NOT namespaced", nil, func(s *sqlite3.Stmt) error {
			f.wide[s.ColumnInt64(0)] = true
			return nil
		})
	}
	for _, of := range f.q.Fields {
		c := field{Field: of}
		if err == nil && of.Namespace {
			c.ids, err = db.ids([]string{of.Value}, namespacesNamed)
		}
		f.fields = append(f.fields, c)
	}
	return err
}

// in reports whether a namespace is selected.
func (f *filter) in(namespace int64) bool {
	return (f.namespaces == nil || f.namespaces[namespace]) && !f.without[namespace]
}

// has reports whether an object of a selected kind matches by its namespace and its name.
func (f *filter) has(namespace int64, name string) bool {
	for _, c := range f.fields {
		if is := c.Namespace && c.ids[namespace] || !c.Namespace && c.Value == name; is == c.Not {
			return false
		}
	}
	return f.in(namespace)
}

// narrow makes the conditions. Lists of up to mostIDs numbers are conditions, padded to a power of fewIDs: few statements
// serve all queries.
func (f *filter) narrow() {
	if !f.q.Quiet {
		f.sql = " AND NOT c.quiet"
	}
	if f.q.Plain {
		f.sql += " AND NOT c.routine"
	}
	oneOf := func(ids map[int64]bool, condition string) {
		sql, args := anyOf(ids, condition)
		f.sql, f.args = f.sql+sql, append(f.args, args...)
	}
	oneOf(f.kinds, " AND (c.object IS NULL OR c.kind %s)") // an absence belongs to every kind and namespace
	if !f.limited() {                                      // else the number of rows would tell who changes what the reader may not see
		oneOf(f.managers, " AND c.manager %s")
	}
	if f.namespaces != nil {
		within := maps.Clone(f.namespaces)
		maps.Copy(within, f.nowhere) // gaps and absences may be of no namespace
		oneOf(within, " AND c.namespace %s")
	}
}

// anyOf returns the condition that a number is one of some; empty for nil, which is all numbers, and for too many.
func anyOf(ids map[int64]bool, condition string) (sql string, args []any) {
	n := fewIDs
	for n < len(ids) {
		n *= fewIDs
	}
	if ids == nil || n > mostIDs {
		return "", nil
	}
	list := slices.Sorted(maps.Keys(ids))
	if len(list) == 0 {
		list = []int64{-1} // no row has it
	}
	for i := range n {
		args = append(args, list[min(i, len(list)-1)])
	}
	return fmt.Sprintf(condition, "IN (?"+strings.Repeat(", ?", n-1)+")"), args
}

const (
	// fewIDs is how many numbers a condition lists, or a power of it up to mostIDs: a namespace has one in each cluster.
	fewIDs  = 4
	mostIDs = 64
)

// The queries of matching: numbers, names and clusters.
const (
	namespaceRows   = "SELECT n.id, n.name, c.name FROM namespaces n JOIN clusters c ON c.id = n.cluster"
	managerRows     = "SELECT n.id, n.name, '' FROM managers n"
	namespacesNamed = "SELECT id FROM namespaces WHERE name = ?"
)

// matching returns the numbers of the rows, in some clusters or in all, whose names some patterns match; nil if there are no
// patterns. Names are looked up; where one of them needs a search, all rows are matched.
func (db *db) matching(rows string, clusters, patterns []string, search, match func(string) bool) (map[int64]bool, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	ids := map[int64]bool{}
	add := func(s *sqlite3.Stmt) error {
		if match(s.ColumnText(1)) && anyOr(clusters, s.ColumnText(2)) {
			ids[s.ColumnInt64(0)] = true
		}
		return nil
	}
	if slices.ContainsFunc(patterns, search) {
		return ids, db.query(rows, nil, add)
	}
	for _, name := range patterns {
		if err := db.query(rows+" WHERE n.name = ?", []any{name}, add); err != nil {
			return nil, err
		}
	}
	return ids, nil
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

// wantedSeverities returns a bit for each severity that a query wants.
func wantedSeverities(q Query) (bits uint64) {
	for _, s := range q.Severities {
		if n := slices.Index(severities[:], s); n >= 0 {
			bits |= 1 << n
		} else {
			bits |= 1 << len(severities) // which no change has
		}
	}
	return bits
}

// rare returns a partial index that has all changes that match, with its condition; empty if there is none.
func (f *filter) rare() (index, condition string) {
	switch {
	case f.q.Plain && !f.q.Quiet:
		return "changes_plain", "NOT c.routine AND NOT c.quiet"
	case f.severities != 0 && f.severities&(1<<severe-1) == 0: // gaps, which match, are warnings
		return "changes_severe", fmt.Sprintf("c.severity >= %d", severe)
	case f.ops == 1<<opNumber(event.Deleted):
		return "changes_deleted", fmt.Sprintf("c.op = %d", opNumber(event.Deleted))
	}
	return "", ""
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

// lastOf is the newest change of an object o; 0 if it has none.
const lastOf = "ifnull((SELECT max(seq) FROM changes WHERE object = o.id), 0)"

// named returns the objects with one of the query's names and its UID, each with its newest change.
func (db *db) named(f *filter) (objects []object, err error) {
	resources, err := db.resources(f.q.Resources, f.q.Clusters)
	for _, resource := range resources {
		for _, name := range namesOrAll(&f.q, resource.name) {
			if err == nil {
				err = db.objects(f, resource.id, name, f.q.UID, "o.id, "+lastOf+", o.name, o.namespace", func(s *sqlite3.Stmt) error {
					if f.has(s.ColumnInt64(3), s.ColumnText(2)) {
						objects = append(objects, object{id: s.ColumnInt64(0), last: s.ColumnInt64(1)})
					}
					return nil
				})
			}
		}
	}
	return objects, err
}

// namesOrAll returns the names that a query gives to objects of a resource; one empty name if it selects all names.
func namesOrAll(q *Query, resource string) []string {
	if len(q.Names) == 0 {
		return []string{""}
	}
	return slices.DeleteFunc(q.NamesOf(resource), func(name string) bool { return name == "" })
}

// kindsOf returns the numbers of the kinds of some group-resources in some clusters, or in all; nil without group-resources.
func (db *db) kindsOf(resources, clusters []string) (map[int64]bool, error) {
	if len(resources) == 0 {
		return nil, nil
	}
	some, err := db.resources(resources, clusters)
	ids := map[int64]bool{}
	for _, r := range some {
		if err == nil {
			err = db.query("SELECT id FROM kinds WHERE resource = ?", []any{r.id}, func(s *sqlite3.Stmt) error {
				ids[s.ColumnInt64(0)] = true
				return nil
			})
		}
	}
	return ids, err
}

// mayHave reports whether a block can have a change that matches.
func (f *filter) mayHave(b *block) bool {
	managers := f.managers
	if f.limited() {
		managers = nil // a block can have those of changes that the reader may not see
	}
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
		return f.ops&b.sum.ops != 0 && (gaps || f.severities == 0 || f.severities&b.sum.severities != 0) && among(f.kinds, b.sum.kinds) && (gaps || among(f.namespaces, b.sum.namespaces)) && among(managers, b.sum.managers)
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
	case r.quiet && !f.q.Quiet, r.routine && f.q.Plain,
		op != "" && f.ops>>r.op&1 == 0, // an unknown operation is damage, which the caller reports
		f.clusters != nil && !f.clusters[r.kind],
		f.kinds != nil && !f.kinds[r.kind] && !absent,
		f.managers != nil && !f.managers[r.manager],
		!f.judged(r.op, r.severity),
		!absent && !f.placed(r, op),
		f.since != 0 && to < f.since,
		f.until != 0 && from >= f.until,
		f.scope != nil && !f.scope.shows(r, op == event.Gap && f.nowhere[r.namespace]):
		return false
	default:
		return true
	}
}

// judged reports whether a severity matches. A gap has any.
func (f *filter) judged(op, severity int) bool {
	return f.severities == 0 || opOf(op) == event.Gap || f.severities>>severity&1 == 1
}

// placed reports whether the namespace of a record matches, and its name.
func (f *filter) placed(r *record, op event.Op) bool {
	if op != event.Gap {
		return f.has(r.namespace, r.name)
	}
	return f.nowhere[r.namespace] && !f.wide[r.kind] || f.in(r.namespace)
}
