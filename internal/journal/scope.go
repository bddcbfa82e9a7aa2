package journal

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/selection"
)

// A query with a Scope reads no object outside of it, and what it reads does not depend on the names, managers and contents
// outside: else the time that it takes would tell them. Blocks are skipped by kinds and namespaces of the Scope only.

// Scope is what a reader may see.
type Scope = selection.Scope

// scope is a Scope by the file's numbers.
type scope struct {
	kinds  map[int64]int64           // the resource of each kind
	wide   map[int64]bool            // resources in all namespaces
	narrow map[int64]map[int64]int64 // resources in namespaces: objects created from that time on
	gaps   map[int64]bool            // resources of which the gaps of the whole kind are shown
	whole  bool                      // all kinds are wide
}

// anyTime is the time of an object of any age.
const anyTime = math.MinInt64

// scope resolves a Scope; nil without one.
func (db *db) scope(s *Scope) (*scope, error) {
	if s == nil {
		return nil, nil
	}
	resources, err := db.resources(nil, nil)
	if err != nil {
		return nil, err
	}
	out := &scope{kinds: map[int64]int64{}, wide: map[int64]bool{}, narrow: map[int64]map[int64]int64{}, gaps: map[int64]bool{}, whole: true}
	ids := map[resource]int64{}
	for _, r := range resources {
		of := selection.Place{Cluster: r.cluster, Resource: r.name}
		ids[resource{cluster: r.cluster, name: r.name}] = r.id
		_, out.wide[r.id] = s.Places[of]
		out.gaps[r.id] = out.wide[r.id] || s.Gaps[of]
		out.whole = out.whole && out.wide[r.id]
	}
	namespaces := map[selection.Place]int64{}
	err = db.query("SELECT n.id, n.name, "+clusterKey+" FROM namespaces n JOIN clusters c ON c.id = n.cluster", nil, func(st *sqlite3.Stmt) error {
		namespaces[selection.Place{Cluster: st.ColumnText(2), Namespace: st.ColumnText(1)}] = st.ColumnInt64(0)
		return nil
	})
	for p, since := range s.Places {
		r, ns := ids[resource{cluster: p.Cluster, name: p.Resource}], namespaces[selection.Place{Cluster: p.Cluster, Namespace: p.Namespace}]
		if p.Namespace == "" || r == 0 || ns == 0 || out.wide[r] {
			continue
		}
		if out.narrow[r] == nil {
			out.narrow[r] = map[int64]int64{}
		}
		out.narrow[r][ns] = anyTime
		if !since.IsZero() {
			out.narrow[r][ns] = since.UnixMilli()
		}
	}
	if err == nil {
		err = db.query("SELECT id, resource FROM kinds", nil, func(st *sqlite3.Stmt) error {
			out.kinds[st.ColumnInt64(0)] = st.ColumnInt64(1)
			return nil
		})
	}
	return out, err
}

// in reports whether the kind of a resource is visible in a namespace, and from which creation on its objects are.
func (s *scope) in(resource, namespace int64) (since int64, ok bool) {
	if s == nil || s.wide[resource] {
		return anyTime, true
	}
	since, ok = s.narrow[resource][namespace]
	return since, ok
}

// shows reports whether a record is visible. A gap is as old as it was seen.
func (s *scope) shows(r *record, ofKind bool) bool {
	switch resource := s.kinds[r.kind]; {
	case opOf(r.op) == event.Absent:
		return true
	case ofKind:
		return s.gaps[resource]
	default:
		since, ok := s.in(resource, r.namespace)
		at := r.created
		if r.object == 0 {
			at = r.time + r.lag
		}
		return ok && at >= since
	}
}

// confine narrows the filter to the kinds and namespaces of its scope, so that blocks and rows without any are skipped.
func (f *filter) confine(db *db) error {
	s := f.scope
	if s == nil || s.whole {
		return nil
	}
	kinds := map[int64]bool{}
	for kind, resource := range s.kinds {
		if (f.kinds == nil || f.kinds[kind]) && (s.gaps[resource] || len(s.narrow[resource]) > 0) {
			kinds[kind] = true
		}
	}
	f.kinds = kinds
	within := map[int64]bool{}
	if f.namespaces == nil {
		for _, wide := range s.wide {
			if wide {
				return nil
			}
		}
		for _, in := range s.narrow {
			for ns := range in {
				if f.in(ns) {
					within[ns] = true
				}
			}
		}
	}
	for ns := range f.namespaces {
		known, err := s.knows(db, ns)
		if err != nil {
			return err
		}
		if known {
			within[ns] = true
		}
	}
	f.namespaces = within
	return nil
}

// knows reports whether something is visible in a namespace: else blocks are not chosen by it, which would tell its name.
func (s *scope) knows(db *db, namespace int64) (bool, error) {
	for _, in := range s.narrow {
		if _, ok := in[namespace]; ok {
			return true, nil
		}
	}
	for resource, wide := range s.wide {
		if !wide {
			continue
		}
		if n, err := db.integer("SELECT 1 FROM objects WHERE resource = ? AND namespace = ? LIMIT 1", resource, namespace); n != 0 || err != nil {
			return n != 0, err
		}
	}
	return false, nil
}

// limited reports whether there is something that the filter must not read.
func (f *filter) limited() bool { return f.scope != nil && !f.scope.whole }

// namespacesOf calls each with the namespaces in which a resource has objects. It reads one entry of the index for each.
func (db *db) namespacesOf(resource int64, each func(namespace int64)) error {
	return db.query(inEach+"SELECT namespace FROM each", []any{resource}, func(s *sqlite3.Stmt) error {
		each(s.ColumnInt64(0))
		return nil
	})
}

// inEach makes each the table of the namespaces in which resource ?1 has objects.
const inEach = `WITH RECURSIVE next(namespace) AS (SELECT min(namespace) FROM objects WHERE resource = ?1
	UNION ALL SELECT (SELECT min(namespace) FROM objects o WHERE o.resource = ?1 AND o.namespace > next.namespace) FROM next WHERE namespace IS NOT NULL),
	each AS (SELECT namespace FROM next WHERE namespace IS NOT NULL) `

// objects calls each with some columns of the objects o of a resource that the filter's namespaces and scope have: of those with
// a name and a UID, unless they are empty. It does not apply the filter's exclusions.
func (db *db) objects(f *filter, resource int64, name, uid, columns string, each func(s *sqlite3.Stmt) error) error {
	where, args := "", []any(nil)
	if name != "" {
		where, args = where+" AND o.name = ?", append(args, name)
	}
	if uid != "" {
		where, args = where+" AND o.uid = ?", append(args, uid)
	}
	counted := func(s *sqlite3.Stmt) error {
		db.looked++
		return each(s)
	}
	within, some := f.within(resource)
	switch {
	case some:
		for _, ns := range within {
			since, _ := f.scope.in(resource, ns)
			err := db.query("SELECT "+columns+" FROM objects o WHERE o.resource = ? AND o.namespace = ? AND o.created >= ?"+where, append([]any{resource, ns, since}, args...), counted)
			if err != nil {
				return err
			}
		}
		return nil
	case name != "" && uid == "":
		return db.query(inEach+"SELECT "+columns+" FROM each CROSS JOIN objects o ON o.namespace = each.namespace WHERE o.resource = ?1"+where, append([]any{resource}, args...), counted)
	default:
		return db.query("SELECT "+columns+" FROM objects o WHERE o.resource = ?"+where, append([]any{resource}, args...), counted)
	}
}

// within returns the namespaces in which a resource must be looked for; not some: in all.
func (f *filter) within(resource int64) (namespaces []int64, some bool) {
	wide := f.scope == nil || f.scope.wide[resource]
	if wide && f.namespaces == nil {
		return nil, false
	}
	if wide {
		for ns := range f.namespaces {
			namespaces = append(namespaces, ns)
		}
	} else {
		for ns := range f.scope.narrow[resource] {
			if f.in(ns) {
				namespaces = append(namespaces, ns)
			}
		}
	}
	slices.Sort(namespaces)
	return namespaces, true
}

// placesAge is how long Places adds to what it knows before it reads all again, so that it forgets places that are gone; and
// placesBehind how many changes it reads for that.
const (
	placesAge    = 10 * time.Minute
	placesBehind = 4096
)

// places are the known places.
type places struct {
	all  map[selection.Place]bool
	last int64 // the change up to which they are known
	at   time.Time
}

// PlacesBetween returns the namespaced places of the changes between two sequence numbers, exclusive.
func (r *Reader) PlacesBetween(ctx context.Context, after, before int64) (all map[selection.Place]bool, err error) {
	all = map[selection.Place]bool{}
	err = r.do(ctx, func() error {
		return r.db.query(newPlaces, []any{after, before - 1}, func(s *sqlite3.Stmt) error {
			all[columnPlace(s)] = true
			return nil
		})
	})
	return all, err
}

func columnPlace(s *sqlite3.Stmt) selection.Place {
	of := Kind{Resource: s.ColumnText(0), Group: s.ColumnText(1)}
	return selection.Place{Cluster: s.ColumnText(2), Resource: of.GroupResource(), Namespace: s.ColumnText(3)}
}

// Places returns the namespaced places of which the journal has objects or gaps; a place without a namespace has gaps of the
// whole kind. It may return some that are gone. The caller must not change the map.
func (r *Reader) Places(ctx context.Context) (all map[selection.Place]bool, err error) {
	err = r.do(ctx, func() error {
		last, err := r.db.integer("SELECT max(seq) FROM changes")
		if err != nil {
			return err
		}
		known, now := r.places, time.Now()
		p := places{all: maps.Clone(known.all), last: last, at: known.at}
		add := func(s *sqlite3.Stmt) error {
			p.all[columnPlace(s)] = true
			return nil
		}
		switch {
		case known.all == nil || last < known.last || last-known.last > placesBehind || now.Sub(known.at).Abs() > placesAge:
			p.all, p.at = map[selection.Place]bool{}, now
			err = r.db.query(everyPlace, nil, add)
		case last > known.last:
			err = r.db.query(newPlaces, []any{known.last, last}, add)
		default:
			p.all = known.all
		}
		if err == nil {
			r.places = p
		}
		all = p.all
		return err
	})
	return all, err
}

// The queries of places: the resource, its group and cluster, and the namespace.
var (
	ofPlaces = `SELECT DISTINCT r.plural, r."group", ` + clusterKey + `, n.name FROM p JOIN resources r ON r.id = p.resource
		JOIN clusters c ON c.id = r.cluster JOIN namespaces n ON n.id = p.namespace WHERE r.id IN (SELECT resource FROM kinds WHERE namespaced)`
	everyPlace = fmt.Sprintf(`WITH RECURSIVE next(id, resource, namespace) AS (
		SELECT * FROM (SELECT id, resource, namespace FROM objects ORDER BY resource, namespace LIMIT 1)
		UNION ALL SELECT o.id, o.resource, o.namespace FROM next CROSS JOIN objects o WHERE o.id =
			(SELECT id FROM objects WHERE (resource, namespace) > (next.resource, next.namespace) ORDER BY resource, namespace LIMIT 1)),
		p AS (SELECT resource, namespace FROM next
			UNION SELECT k.resource, c.namespace FROM gaps g JOIN changes c ON c.seq = g.seq JOIN kinds k ON k.id = c.kind WHERE c.op = %d) `, opNumber(event.Gap)) + ofPlaces
	newPlaces = fmt.Sprintf(`WITH p AS (SELECT DISTINCT k.resource, c.namespace FROM changes c JOIN kinds k ON k.id = c.kind
		WHERE c.seq > ? AND c.seq <= ? AND c.op <> %d) `, opNumber(event.Absent)) + ofPlaces
)
