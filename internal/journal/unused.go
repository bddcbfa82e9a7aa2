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
	// unusedFrom is from how many names on, and after how many new ones, it is worth looking for unused ones.
	unusedFrom = 1000
	// unusedEvery is after how long they are looked for again, where not so many came.
	unusedEvery = 24 * time.Hour
	// unusedNames is how many are looked at in one pass over the file; it bounds the memory.
	unusedNames = 100_000
	// unusedBlocks, unusedObjects and unusedRows are how many blocks are read, how many entries of an index, and how
	// many names are removed at a time: who appends waits no longer than that.
	unusedBlocks  = 500
	unusedObjects = 2000
	unusedRows    = 500
)

// unused finds names that nothing refers to any more, such as of managers that wrote once, and removes them in small
// steps, between which others append; only one goroutine may. A name that an append uses meanwhile is struck off by names.id. The newest name
// stays, so that no number is given twice: readers remember what the numbers stand for.
type unused struct {
	began  time.Time // the last search; zero: none since the journal was opened
	newest int64     // the newest name then
}

// removeUnused removes unused names, if it is time to look for some.
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

// removeUnusedAfter looks at the names with the numbers between two, as many as one pass takes, and returns how many
// it removed, and the last that it looked at.
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

// usedByChanges strikes off the names of managers and namespaces that changes have, as the sums of their blocks say. A
// block may still have names of changes that were removed from it; these go when the block does.
func (j *Journal) usedByChanges() func() (done bool, err error) {
	next := int64(0)
	return func() (bool, error) {
		n := 0
		var unsummed [][2]int64
		err := j.db.query("SELECT first, first + length(ids) / ?, sum FROM blocks WHERE first >= ? ORDER BY first LIMIT ?", []any{idSize, next, unusedBlocks},
			func(s *sqlite3.Stmt) error {
				n, next = n+1, s.ColumnInt64(0)+1
				sum := sumOf(blob(s, 2))
				if sum == nil || !j.names.uses(sum.namespaces) || !j.names.uses(sum.managers) {
					unsummed = append(unsummed, [2]int64{s.ColumnInt64(0), s.ColumnInt64(1)})
				}
				return nil
			})
		for _, b := range unsummed {
			if err == nil {
				err = j.db.query("SELECT c.manager, g.namespace FROM changes c LEFT JOIN gaps g ON g.seq = c.seq WHERE c.seq >= ? AND c.seq < ?", []any{b[0], b[1]},
					func(s *sqlite3.Stmt) error {
						delete(j.names.candidates, s.ColumnInt64(0))
						delete(j.names.candidates, s.ColumnInt64(1))
						return nil
					})
			}
		}
		return n < unusedBlocks, err
	}
}

// uses strikes off names; false means that the set cannot be read.
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

// usedByObjects strikes off the namespaces and kinds of objects. It reads an index, not the objects with their states.
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

// removeCandidates removes what was not struck off.
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
