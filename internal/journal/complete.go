package journal

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// Names returns the names of recorded objects of some group-resources that begin with a prefix, sorted, at most limit.
// An empty namespace means all namespaces.
func (r *Reader) Names(ctx context.Context, resources []string, namespace, prefix string, limit int) (names []string, err error) {
	err = r.do(ctx, func() error {
		some, err := r.db.resources(resources, nil)
		if err != nil {
			return err
		}
		within, err := r.db.ids([]string{namespace}, namespacesNamed)
		if err != nil {
			return err
		}
		wanted := map[int64]bool{}
		for _, of := range some {
			wanted[of.id] = true
		}
		return r.db.query("SELECT DISTINCT name, resource, namespace FROM objects WHERE name >= ? AND name < ? ORDER BY name",
			[]any{prefix, prefix + "\U0010ffff"}, func(s *sqlite3.Stmt) error {
				if !wanted[s.ColumnInt64(1)] || namespace != "" && !within[s.ColumnInt64(2)] {
					return nil
				}
				if n := s.ColumnText(0); len(names) == 0 || names[len(names)-1] != n {
					names = append(names, n)
				}
				if len(names) == limit {
					return errDone
				}
				return nil
			})
	})
	return names, err
}
