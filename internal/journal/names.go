package journal

import (
	"context"
	"maps"

	"github.com/ncruces/go-sqlite3"
)

// names maps names that recur to their numbers and back. It caches up to maxNames of each: a cluster may keep making
// new namespaces.
type names struct {
	db      *db
	strings map[string]int64
	kinds   map[Kind]int64
	texts   map[int64]string
	kindsBy map[int64]Kind
	short   map[string]string // short names by group-resource; nil: not read yet
	// candidates are names that seem unused while a search runs; see unused.
	candidates map[int64]bool
}

// maxNames bounds each map: more names than a busy cluster uses within minutes, in a megabyte.
const maxNames = 4096

// keep caches a name. A full map is emptied first: names in use are soon cached again.
func keep[K, V comparable](in *map[K]V, key K, value V) {
	if *in == nil || len(*in) >= maxNames {
		*in = map[K]V{}
	}
	(*in)[key] = value
}

// forget empties the cache after a rollback.
func (n *names) forget() { *n = names{db: n.db, candidates: n.candidates} }

// drop forgets names that were removed from the file.
func (n *names) drop(gone map[int64]bool) {
	maps.DeleteFunc(n.strings, func(_ string, id int64) bool { return gone[id] })
	maps.DeleteFunc(n.texts, func(id int64, _ string) bool { return gone[id] })
	maps.DeleteFunc(n.candidates, func(id int64, _ bool) bool { return gone[id] })
}

// id returns the number of a string, and assigns one if it has none.
func (n *names) id(s string) (int64, error) {
	if id, ok := n.strings[s]; ok {
		delete(n.candidates, id)
		return id, nil
	}
	id, err := n.find(s)
	delete(n.candidates, id)
	if err == nil && id == 0 {
		if err = n.db.exec("INSERT INTO strings (s) VALUES (?)", s); err == nil {
			id = n.db.c.LastInsertRowID()
		}
	}
	if err != nil {
		return 0, err
	}
	keep(&n.strings, s, id)
	return id, nil
}

// find returns the number of a string; 0 if it has none.
func (n *names) find(s string) (int64, error) {
	return n.db.integer("SELECT id FROM strings WHERE s = ?", s)
}

// text returns the string of a number; 0 is the empty string.
func (n *names) text(id int64) (string, error) {
	if s, ok := n.texts[id]; ok || id == 0 {
		return s, nil
	}
	found := false
	var text string
	err := n.db.query("SELECT s FROM strings WHERE id = ?", []any{id}, func(s *sqlite3.Stmt) error {
		text, found = s.ColumnText(0), true
		return nil
	})
	if err != nil {
		return "", err
	}
	if !found {
		return "", damaged(n.db.path, "strings", "no string %d", id)
	}
	keep(&n.texts, id, text)
	return text, nil
}

// kindID returns the number of a kind, and assigns one if it has none.
func (n *names) kindID(k Kind) (int64, error) {
	if id, ok := n.kinds[k]; ok {
		return id, nil
	}
	id, err := n.db.integer(`SELECT id FROM kinds WHERE "group" = ? AND plural = ? AND version = ? AND kind = ? AND namespaced = ?`,
		k.Group, qualify(k.Resource, k.Cluster), k.Version, k.Kind, k.Namespaced)
	if err != nil {
		return 0, err
	}
	if id == 0 {
		if err := n.db.several(k.Cluster); err != nil {
			return 0, err
		}
		resource, err := n.id(resourceOf(k))
		if err != nil {
			return 0, err
		}
		err = n.db.exec(`INSERT INTO kinds (resource, "group", version, plural, kind, namespaced) VALUES (?, ?, ?, ?, ?, ?)`,
			resource, k.Group, k.Version, qualify(k.Resource, k.Cluster), k.Kind, k.Namespaced)
		if err != nil {
			return 0, err
		}
		id = n.db.c.LastInsertRowID()
	}
	keep(&n.kinds, k, id)
	return id, nil
}

// Kinds returns all kinds that the journal has seen; of kinds that differ only by name, the newest is last.
func (j *Journal) Kinds(ctx context.Context) (kinds []Kind, err error) {
	err = j.do(ctx, "read", func() (err error) {
		kinds, err = j.db.kinds()
		return err
	})
	return kinds, err
}

func (db *db) kinds() (kinds []Kind, err error) {
	err = db.query(kindColumns+` ORDER BY plural, "group", version, id`, nil, func(s *sqlite3.Stmt) error {
		kinds = append(kinds, columnKind(s))
		return nil
	})
	return kinds, err
}

const kindColumns = `SELECT "group", version, plural, kind, namespaced FROM kinds`

// kind returns the kind of a number.
func (n *names) kind(id int64) (Kind, error) {
	if k, ok := n.kindsBy[id]; ok {
		return k, nil
	}
	found := false
	var k Kind
	err := n.db.query(kindColumns+" WHERE id = ?", []any{id}, func(s *sqlite3.Stmt) error {
		k, found = columnKind(s), true
		return nil
	})
	if err != nil {
		return Kind{}, err
	}
	if !found {
		return Kind{}, damaged(n.db.path, "kinds", "no kind %d", id)
	}
	keep(&n.kindsBy, id, k)
	return k, nil
}

func columnKind(s *sqlite3.Stmt) Kind {
	resource, cluster := unqualify(s.ColumnText(2))
	return Kind{
		Group: s.ColumnText(0), Version: s.ColumnText(1), Resource: resource, Kind: s.ColumnText(3), Namespaced: s.ColumnBool(4), Cluster: cluster,
	}
}
