package journal

import (
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// byOwner selects the objects of a controller by its kind and name. Its UID may be unknown by now.
const byOwner = "SELECT id, " + lastOf + `, name, namespace, resource FROM objects o WHERE owner <> '' AND owner >= ?1 || char(10) AND owner < ?1 || char(11)`

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
		err := db.children(c, controls[c.resource], func(o object, as controller) {
			if seen[o.id] || !f.in(as.namespace) {
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

// children calls each with a controller's objects of the given resources.
func (db *db) children(c controller, resources map[int64]bool, each func(o object, as controller)) error {
	if len(resources) == 0 {
		return nil
	}
	kinds, err := db.texts("SELECT DISTINCT kind FROM kinds WHERE resource = ?", c.resource)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		err := db.query(byOwner, []any{kind + "\n" + c.name}, func(s *sqlite3.Stmt) error {
			as := controller{resource: s.ColumnInt64(4), name: s.ColumnText(2), namespace: s.ColumnInt64(3)}
			if resources[as.resource] && (c.anywhere || as.namespace == c.namespace) {
				each(object{id: s.ColumnInt64(0), last: s.ColumnInt64(1)}, as)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
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
