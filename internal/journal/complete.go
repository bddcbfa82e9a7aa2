package journal

import (
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// namesPlaces is how many places are read in one read transaction.
const namesPlaces = 64

// Names returns the names of recorded objects of some group-resources that begin with a prefix, sorted, at most limit.
// An empty namespace means all namespaces.
func (r *Reader) Names(ctx context.Context, resources []string, namespace, prefix string, limit int) ([]string, error) {
	return r.NamesWithin(ctx, nil, resources, namespace, prefix, limit)
}

// NamesWithin is Names of the objects of a scope. It reads at most limit names of each place: objects outside of the scope
// neither take the place of others nor cost time.
func (r *Reader) NamesWithin(ctx context.Context, s *Scope, resources []string, namespace, prefix string, limit int) (names []string, err error) {
	var all []namesPlace
	err = r.do(ctx, func() error {
		all, err = r.db.placesOf(s, resources, namespace)
		return err
	})
	for some := range slices.Chunk(all, namesPlaces) {
		if err == nil {
			err = r.do(ctx, func() error {
				for _, p := range some {
					if err := r.db.namesIn(p, prefix, limit, &names); err != nil {
						return err
					}
				}
				return nil
			})
		}
		slices.Sort(names)
		names = slices.Compact(names)
		names = names[:min(len(names), limit)]
	}
	return names, err
}

// namesPlace is a place by the file's numbers, with the creation of the oldest visible objects.
type namesPlace struct{ resource, namespace, since int64 }

// placesOf returns the places of some group-resources in a namespace, or in all.
func (db *db) placesOf(s *Scope, resources []string, namespace string) (all []namesPlace, err error) {
	q := Query{Scope: s}
	if namespace != "" {
		q.Namespaces = []string{namespace}
	}
	f, err := db.filter(q)
	if err != nil {
		return nil, err
	}
	some, err := db.resources(resources, nil)
	for _, of := range some {
		within, known := f.within(of.id)
		if !known && err == nil {
			err = db.namespacesOf(of.id, func(ns int64) { within = append(within, ns) })
		}
		for _, ns := range within {
			since, _ := f.scope.in(of.id, ns)
			all = append(all, namesPlace{of.id, ns, since})
		}
	}
	return all, err
}

// namesIn appends the first names of a place that begin with a prefix.
func (db *db) namesIn(p namesPlace, prefix string, limit int, to *[]string) error {
	const sql = "SELECT DISTINCT name FROM objects WHERE resource = ? AND namespace = ? AND name >= ? AND name < ? AND created >= ? ORDER BY name"
	n := 0
	return db.query(sql, []any{p.resource, p.namespace, prefix, prefix + "\U0010ffff", p.since}, func(s *sqlite3.Stmt) error {
		db.looked++
		*to = append(*to, s.ColumnText(0))
		if n++; n >= limit {
			return errDone
		}
		return nil
	})
}
