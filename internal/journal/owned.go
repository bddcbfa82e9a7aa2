package journal

import (
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// byOwner selects the objects of a controller in namespace ?2, created from ?3 on, by its kind and name. Its UID may be unknown by
// now.
const byOwner = "SELECT id, " + lastOf + `, name, resource, created FROM objects o WHERE owner <> '' AND namespace = ?2 AND owner >= ?1 || char(10) AND owner < ?1 || char(11) AND created >= ?3`

// controller is an object whose dependents are searched.
type controller struct {
	resource  int64
	name      string
	namespace int64
	anywhere  bool // in any of the query's namespaces
}

// owned returns the objects that the named ones own, directly or not, without those that f has.
func (db *db) owned(f *filter) ([]object, error) {
	controls, err := db.controls(f.q.Owned)
	if err != nil {
		return nil, err
	}
	of, err := db.resources(f.q.Resources, f.q.Clusters)
	if err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	for _, o := range f.objects {
		seen[o.id] = true
	}
	var next []controller
	for _, resource := range of {
		for _, name := range f.q.NamesOf(resource.name) {
			next = append(next, controller{resource: resource.id, name: name, anywhere: true})
		}
	}
	var found []object
	for len(next) > 0 {
		c := next[0]
		next = next[1:]
		err := db.children(f, c, controls[c.resource], func(o object, as controller) {
			if seen[o.id] {
				return
			}
			seen[o.id] = true
			found, next = append(found, o), append(next, as)
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// children calls each with a controller's objects of the given resources. Where the reader may not see the controller's kind,
// it learns nothing of what such an object owns.
func (db *db) children(f *filter, c controller, resources map[int64]bool, each func(o object, as controller)) error {
	if len(resources) == 0 {
		return nil
	}
	in := []int64{c.namespace}
	if c.anywhere {
		var some bool
		if in, some = f.within(c.resource); !some {
			var err error
			if in, err = db.namespacesWithOwners(); err != nil {
				return err
			}
		}
	}
	kinds, err := db.texts("SELECT DISTINCT kind FROM kinds WHERE resource = ?", c.resource)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		for _, ns := range in {
			from, visible := f.scope.in(c.resource, ns)
			if !visible || !f.in(ns) {
				continue
			}
			err := db.query(byOwner, []any{kind + "\n" + c.name, ns, from}, func(s *sqlite3.Stmt) error {
				db.looked++
				as := controller{resource: s.ColumnInt64(3), name: s.ColumnText(2), namespace: ns}
				if since, visible := f.scope.in(as.resource, ns); resources[as.resource] && visible && s.ColumnInt64(4) >= since {
					each(object{id: s.ColumnInt64(0), last: s.ColumnInt64(1)}, as)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// namespacesWithOwners returns the namespaces of objects that have owners. It reads one entry of the index for each.
func (db *db) namespacesWithOwners() (all []int64, err error) {
	err = db.query(`WITH RECURSIVE next(namespace) AS (SELECT min(namespace) FROM objects WHERE owner <> ''
		UNION ALL SELECT (SELECT min(namespace) FROM objects o WHERE o.owner <> '' AND o.namespace > next.namespace) FROM next WHERE namespace IS NOT NULL)
		SELECT namespace FROM next WHERE namespace IS NOT NULL`, nil, func(s *sqlite3.Stmt) error {
		all = append(all, s.ColumnInt64(0))
		return nil
	})
	return all, err
}

// controls is Query.Owned by the file's numbers. Owners and what they own are of one cluster.
func (db *db) controls(owned map[string][]string) (map[int64]map[int64]bool, error) {
	all, err := db.resources(nil, nil)
	controls := map[int64]map[int64]bool{}
	for _, owner := range all {
		of := map[int64]bool{}
		for _, r := range all {
			of[r.id] = r.cluster == owner.cluster && slices.Contains(owned[owner.name], r.name)
		}
		controls[owner.id] = of
	}
	return controls, err
}

func (db *db) texts(sql string, args ...any) (all []string, err error) {
	err = db.query(sql, args, func(s *sqlite3.Stmt) error {
		all = append(all, s.ColumnText(0))
		return nil
	})
	return all, err
}
