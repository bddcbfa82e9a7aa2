package journal

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Namespaces and managers are stored once, and their numbers in rows. A cluster may keep making new ones, so retention removes
// those that nothing uses. To know them without reading all rows, each says which change used it last. Noting that in every
// transaction would cost a write, so it is noted anew only when notedEvery changes have passed since. No number is assigned
// twice: readers cache them, and blocks keep those of removed changes.

// notedEvery is by how many changes the noted last use may lag. Tests replace it.
var notedEvery int64 = 1 << 16

// sweepEvery is how often retention looks for unused namespaces: it reads an index of all objects.
const sweepEvery = 24 * time.Hour

// interned is a table of names, cached both ways. In its statements, ?1 is the cluster and ?2 the name; a manager has no
// cluster.
type interned struct {
	table, find, insert string

	ids   map[inCluster]usage
	texts map[int64]string
}

// inCluster is a name in the cluster of a number.
type inCluster struct {
	cluster int64
	name    string
}

// usage is a row's number, and the change that is noted as the last that used it.
type usage struct{ id, last int64 }

func internedNamespaces() interned {
	return interned{
		table: "namespaces", find: "SELECT id, last FROM namespaces WHERE name = ?2 AND cluster = ?1",
		insert: "INSERT INTO namespaces (cluster, name, last) VALUES (?1, ?2, ?3)",
	}
}

func internedManagers() interned {
	return interned{
		table: "managers", find: "SELECT id, last FROM managers WHERE name = ?2",
		insert: "INSERT INTO managers (name, last) VALUES (?2, ?3)",
	}
}

// use returns the number of a name that the change seq uses, and assigns one if it has none.
func (t *interned) use(db *db, cluster int64, name string, seq int64) (int64, error) {
	key := inCluster{cluster, name}
	u, known := t.ids[key]
	var err error
	if !known {
		err = db.query(t.find, []any{cluster, name}, func(s *sqlite3.Stmt) error {
			u = usage{s.ColumnInt64(0), s.ColumnInt64(1)}
			return nil
		})
	}
	switch {
	case err != nil:
	case u.id == 0:
		err = db.exec(t.insert, cluster, name, seq)
		u = usage{db.c.LastInsertRowID(), seq}
	case seq-u.last >= notedEvery:
		err = db.exec("UPDATE "+t.table+" SET last = ? WHERE id = ?", seq, u.id)
		u.last = seq
	case known:
		return u.id, nil
	}
	if err != nil {
		return 0, err
	}
	keep(&t.ids, key, u)
	return u.id, nil
}

// text returns the name of a number; 0 is the empty name.
func (t *interned) text(db *db, id int64) (string, error) {
	if s, ok := t.texts[id]; ok || id == 0 {
		return s, nil
	}
	found, err := db.texts("SELECT name FROM "+t.table+" WHERE id = ?", id)
	if err == nil && len(found) == 0 {
		err = damaged(db.path, t.table, "no row %d of %s", id, t.table)
	}
	if err != nil {
		return "", err
	}
	keep(&t.texts, id, found[0])
	return found[0], nil
}

// removeUnused removes managers that no change uses any longer and, once in a while, namespaces that neither a change nor an
// object uses. It returns how many.
func (j *Journal) removeUnused(ctx context.Context, now time.Time) (removed int, err error) {
	err = j.write(ctx, "shrink", func() error {
		// A change at or after the oldest one used no row whose noted use is older than this.
		oldest, err := j.db.integer("SELECT ifnull(min(seq), ?) FROM changes", j.tail.next())
		if err != nil {
			return err
		}
		before := oldest - notedEvery
		if removed, err = j.removeNames("DELETE FROM managers WHERE last <= ?", before); err != nil {
			return err
		}
		if now.Sub(j.swept).Abs() < sweepEvery {
			return nil
		}
		namespaces, err := j.removeNames("DELETE FROM namespaces WHERE last <= ? AND id NOT IN (SELECT namespace FROM objects)", before)
		if removed, j.swept = removed+namespaces, now; namespaces > 0 {
			j.shares = shares{} // taken anew when they are needed, without those
		}
		return err
	})
	return removed, err
}

// removeAllUnused removes all unused managers and namespaces, for which it reads all changes.
func (j *Journal) removeAllUnused() error {
	_, err := j.removeNames("DELETE FROM managers WHERE id NOT IN (SELECT manager FROM changes WHERE manager IS NOT NULL)")
	if err == nil {
		_, err = j.removeNames("DELETE FROM namespaces WHERE id NOT IN (SELECT namespace FROM objects) AND id NOT IN (SELECT namespace FROM changes)")
	}
	return err
}

// removeNames runs a statement that removes names, and returns how many it removed.
func (j *Journal) removeNames(sql string, args ...any) (int, error) {
	if err := j.db.exec(sql, args...); err != nil {
		return 0, err
	}
	n := int(j.db.c.Changes())
	if n > 0 {
		j.names.forget()
	}
	return n, nil
}
