package journal

import (
	"context"
	"iter"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Readers that show only a part of the journal need every candidate, to decide about each: Objects is behind Names, and
// WithID behind ByID.

// ObjectName names a recorded object, or several that had the name one after another.
type ObjectName struct{ Resource, Namespace, Name, Cluster string } // Resource is a group-resource; Cluster is as in Kind

// namesPage is how many names are read in one read transaction.
const namesPage = 512

// Objects yields the recorded objects of some group-resources whose names begin with a prefix, ordered by name. An empty
// namespace means all namespaces.
func (r *Reader) Objects(ctx context.Context, resources []string, namespace, prefix string) iter.Seq2[ObjectName, error] {
	return func(yield func(ObjectName, error) bool) {
		last := []any{prefix, int64(0), int64(0)} // name, resource, namespace: what was read
		for done := false; !done; {
			var page []ObjectName
			err := r.do(ctx, func() (err error) {
				page, done, err = r.namesAfter(resources, namespace, prefix, last)
				return err
			})
			for _, o := range page {
				if !yield(o, nil) {
					return
				}
			}
			if err != nil {
				yield(ObjectName{}, err)
				return
			}
		}
	}
}

// namesAfter reads a page of names and moves last to its end.
func (r *Reader) namesAfter(resources []string, namespace, prefix string, last []any) (page []ObjectName, done bool, err error) {
	some, err := r.db.resources(resources, nil)
	if err != nil {
		return nil, true, err
	}
	wanted := map[int64]resource{}
	for _, of := range some {
		wanted[of.id] = of
	}
	within, err := r.db.ids([]string{namespace}, namespacesNamed)
	if err != nil {
		return nil, true, err
	}
	type row struct {
		name      string
		resource  resource
		namespace int64
	}
	var rows []row
	n := 0
	err = r.db.query("SELECT DISTINCT name, resource, namespace FROM objects WHERE (name, resource, namespace) > (?, ?, ?) AND name < ? ORDER BY name, resource, namespace",
		append(last[:3:3], prefix+"\U0010ffff"), func(s *sqlite3.Stmt) error {
			o := row{s.ColumnText(0), wanted[s.ColumnInt64(1)], s.ColumnInt64(2)}
			last[0], last[1], last[2] = o.name, s.ColumnInt64(1), o.namespace
			if o.resource.id != 0 && (namespace == "" || within[o.namespace]) {
				rows = append(rows, o)
			}
			if n++; n == namesPage {
				return errDone
			}
			return nil
		})
	if err != nil {
		return nil, true, err
	}
	for _, o := range rows { // read all first: text runs other statements
		ns, err := r.names.namespaces.text(r.db, o.namespace)
		if err != nil {
			return nil, true, err
		}
		page = append(page, ObjectName{o.resource.name, ns, o.name, o.resource.cluster})
	}
	return page, n < namesPage, nil
}

// idsPage is how many candidates for an id are read in one read transaction.
const idsPage = 64

// WithID yields the changes whose ids begin with a prefix, the newest block of changes first.
func (r *Reader) WithID(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		low, high := idRange(prefix)
		for before, done := int64(1)<<62, false; !done; {
			var seqs []int64
			err := r.do(ctx, func() error {
				done = true
				return r.db.query("SELECT first, ids FROM block_ids WHERE first < ? ORDER BY first DESC", []any{before}, func(s *sqlite3.Stmt) error {
					b := columnIDs(s)
					b.find(low, high, func(seq int64) { seqs = append(seqs, seq) })
					if before = b.first; len(seqs) > 0 {
						done = false
						return errDone
					}
					return nil
				})
			})
			for err == nil && len(seqs) > 0 {
				n := min(idsPage, len(seqs))
				var found []Entry
				err = r.do(ctx, func() error {
					for _, seq := range seqs[:n] {
						if err := r.page(byRange, []any{seq, seq}, nil, &found); err != nil {
							return err
						}
					}
					return nil
				})
				for i := range found {
					if strings.HasPrefix(found[i].ID, prefix) && !yield(found[i], nil) {
						return
					}
				}
				seqs = seqs[n:]
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}
