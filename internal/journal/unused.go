package journal

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"
)

const (
	// unusedFrom is the number of names, and of new names, from which a search pays.
	unusedFrom = 1000
	// unusedEvery is the time after which a search runs even if fewer names are new.
	unusedEvery = 24 * time.Hour
	// unusedNames bounds the names per pass over the file, and so the memory.
	unusedNames = 100_000
	// unusedBlocks, unusedObjects and unusedRows bound, per step, the blocks read, the index entries read and the names
	// removed, and so how long an append waits.
	unusedBlocks  = 500
	unusedObjects = 2000
	unusedRows    = 500
)

// unused finds names that nothing refers to, such as of managers that wrote once, and removes them in small steps between
// which others append; only one goroutine may run it. names.id strikes off a name that an append uses meanwhile. The
// newest name stays, so that no number is assigned twice: readers cache numbers.
type unused struct {
	began  time.Time // start of the last search; zero: none since the journal was opened
	newest int64     // the newest name then
}

// removeUnused removes unused names if a search is due.
func (j *Journal) removeUnused(ctx context.Context, now time.Time) (removed int, err error) {
	newest := int64(0)
	err = j.do(ctx, "read", func() (err error) {
		newest, err = j.db.integer("SELECT max(id) FROM strings")
		return err
	})
	u := &j.unused
	due := newest >= unusedFrom && (newest-u.newest >= unusedFrom || now.Sub(u.began).Abs() >= unusedEvery)
	if err != nil || !due {
		return 0, err
	}
	for after := int64(0); after < newest-1 && err == nil; {
		var n int
		n, after, err = j.removeUnusedAfter(ctx, after, newest)
		removed += n
	}
	if err == nil {
		u.began, u.newest = now, newest
	}
	return removed, err
}

// removeUnusedAfter handles as many names between two numbers as one pass takes. It returns how many it removed, and the
// last one that it handled.
func (j *Journal) removeUnusedAfter(ctx context.Context, after, newest int64) (removed int, last int64, err error) {
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.names.candidates = nil
	}()
	err = j.do(ctx, "read", func() error {
		candidates := map[int64]bool{}
		last = newest - 1
		err := j.db.query(`SELECT id FROM strings WHERE id > ? AND id < ? AND s <> '' AND id NOT IN (SELECT resource FROM kinds) ORDER BY id LIMIT ?`,
			[]any{after, newest, unusedNames}, func(s *sqlite3.Stmt) error {
				if candidates[s.ColumnInt64(0)] = true; len(candidates) == unusedNames {
					last = s.ColumnInt64(0)
				}
				return nil
			})
		j.names.candidates = candidates
		return err
	})
	steps := []func() (done bool, err error){j.usedByChanges(), j.usedByObjects(), j.removeCandidates(&removed)}
	for _, step := range steps {
		for done := false; !done && err == nil; {
			err = j.do(ctx, "shrink", func() (err error) {
				done, err = step()
				return err
			})
		}
	}
	return removed, last, err
}

// usedByChanges strikes off the managers and namespaces of changes, by the sums of their blocks. A block may name those of
// removed changes too, until it is removed.
func (j *Journal) usedByChanges() func() (done bool, err error) {
	next := int64(0)
	return func() (bool, error) {
		n := 0
		err := j.db.query("SELECT first, sum FROM blocks WHERE first >= ? ORDER BY first LIMIT ?", []any{next, unusedBlocks},
			func(s *sqlite3.Stmt) error {
				n, next = n+1, s.ColumnInt64(0)+1
				sum := sumOf(blob(s, 1))
				if !j.names.uses(sum.namespaces) || !j.names.uses(sum.managers) {
					return damaged(j.path, "blocks", "unreadable sum of block %d", next-1)
				}
				return nil
			})
		return n < unusedBlocks, err
	}
}

// uses strikes off names; false if the set cannot be read.
func (n *names) uses(s set) bool {
	for len(s) > 0 {
		id, size := binary.Uvarint(s)
		if size <= 0 {
			return false
		}
		delete(n.candidates, int64(id)) //nolint:gosec // numbers of rows
		s = s[size:]
	}
	return true
}

// usedByObjects strikes off the namespaces and kinds of objects. It reads an index only, not the states.
func (j *Journal) usedByObjects() func() (done bool, err error) {
	name, resource, namespace := "", int64(0), int64(0)
	return func() (bool, error) {
		n := 0
		err := j.db.query(`SELECT name, resource, namespace FROM objects INDEXED BY objects_name WHERE (name, resource, namespace) > (?, ?, ?)
			ORDER BY name, resource, namespace LIMIT ?`, []any{name, resource, namespace, unusedObjects}, func(s *sqlite3.Stmt) error {
			n++
			name, resource, namespace = s.ColumnText(0), s.ColumnInt64(1), s.ColumnInt64(2)
			delete(j.names.candidates, resource)
			delete(j.names.candidates, namespace)
			return nil
		})
		return n < unusedObjects, err
	}
}

// removeCandidates removes the names that were not struck off.
func (j *Journal) removeCandidates(removed *int) func() (done bool, err error) {
	return func() (bool, error) {
		gone := map[int64]bool{}
		for id := range j.names.candidates {
			if gone[id] = true; len(gone) == unusedRows {
				break
			}
		}
		err := j.db.transaction(func() error {
			for _, id := range slices.Sorted(maps.Keys(gone)) {
				if err := j.db.exec("DELETE FROM strings WHERE id = ?", id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		*removed += len(gone)
		j.names.drop(gone)
		return len(j.names.candidates) == 0, nil
	}
}
