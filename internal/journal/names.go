package journal

import (
	"context"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// names maps names that recur to their numbers and back. It caches up to maxNames of each: a cluster may keep making
// new namespaces.
type names struct {
	db                   *db
	clusters             map[string]int64
	resources            map[resource]int64 // by cluster and name
	short                map[int64]string   // short names by resource
	kinds                map[Kind]int64
	kindsBy              map[int64]Kind
	namespaces, managers interned
}

func newNames(db *db) names {
	return names{db: db, namespaces: internedNamespaces(), managers: internedManagers()}
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

// forget empties the cache after a rollback, or after names were removed.
func (n *names) forget() { *n = newNames(n.db) }

// namespace returns the number of a namespace of a cluster for the change seq, and assigns one if it has none.
func (n *names) namespace(cluster, name string, seq int64) (int64, error) {
	of, err := n.cluster(cluster)
	if err != nil {
		return 0, err
	}
	return n.namespaces.use(n.db, of, name, seq)
}

// manager is namespace for a manager.
func (n *names) manager(name string, seq int64) (int64, error) {
	return n.managers.use(n.db, 0, name, seq)
}

// kindID returns the number of a kind, and assigns one if it has none.
func (n *names) kindID(k Kind) (int64, error) {
	if id, ok := n.kinds[k]; ok {
		return id, nil
	}
	resource, err := n.resource(k.Cluster, k.GroupResource())
	if err != nil {
		return 0, err
	}
	id, err := n.db.kindID(resource, k)
	if err == nil && id == 0 {
		err = n.db.exec("INSERT INTO kinds (resource, version, kind, namespaced) VALUES (?, ?, ?, ?)", resource, k.Version, k.Kind, k.Namespaced)
		id = n.db.c.LastInsertRowID()
	}
	if err != nil {
		return 0, err
	}
	keep(&n.kinds, k, id)
	return id, nil
}

// kindID returns the number of a kind of a resource; 0 if the journal does not have it.
func (db *db) kindID(resource int64, k Kind) (int64, error) {
	return db.integer("SELECT id FROM kinds WHERE resource = ? AND version = ? AND kind = ? AND namespaced = ?", resource, k.Version, k.Kind, k.Namespaced)
}

// resource returns the number of a group-resource of a cluster, and assigns one if it has none.
func (n *names) resource(cluster, name string) (int64, error) {
	key := resource{cluster: cluster, name: name}
	if id, ok := n.resources[key]; ok {
		return id, nil
	}
	of, err := n.cluster(cluster)
	if err != nil {
		return 0, err
	}
	id, err := n.db.resourceID(cluster, name)
	if err == nil && id == 0 {
		plural, group, _ := strings.Cut(name, ".")
		err = n.db.exec(`INSERT INTO resources (cluster, "group", plural, short) VALUES (?, ?, ?, '')`, of, group, plural)
		id = n.db.c.LastInsertRowID()
	}
	if err != nil {
		return 0, err
	}
	keep(&n.resources, key, id)
	return id, nil
}

// cluster returns the number of a cluster, and assigns one if it has none.
func (n *names) cluster(name string) (int64, error) {
	if id, ok := n.clusters[name]; ok {
		return id, nil
	}
	id, err := n.db.clusterID(name)
	if err == nil && id == 0 {
		err = n.db.exec("INSERT INTO clusters (name) VALUES (?)", name)
		id = n.db.c.LastInsertRowID()
	}
	if err != nil {
		return 0, err
	}
	keep(&n.clusters, name, id)
	return id, nil
}

// setShortNames stores the short names of a resource if they changed.
func (n *names) setShortNames(resource int64, short []string) error {
	text := strings.Join(short, " ")
	if was, ok := n.short[resource]; ok && was == text {
		return nil
	}
	keep(&n.short, resource, text)
	return n.db.exec("UPDATE resources SET short = ?1 WHERE id = ?2 AND short <> ?1", text, resource)
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
	err = db.query(kindColumns+`ORDER BY r.plural, c.id, r."group", version, k.id`, nil, func(s *sqlite3.Stmt) error {
		kinds = append(kinds, columnKind(s))
		return nil
	})
	return kinds, err
}

const kindColumns = `SELECT r."group", version, r.plural, kind, namespaced, ` + clusterKey + ` FROM kinds k` + ofResources

// kind returns the kind of a number.
func (n *names) kind(id int64) (Kind, error) {
	if k, ok := n.kindsBy[id]; ok {
		return k, nil
	}
	found := false
	var k Kind
	err := n.db.query(kindColumns+"WHERE k.id = ?", []any{id}, func(s *sqlite3.Stmt) error {
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
	return Kind{
		Group: s.ColumnText(0), Version: s.ColumnText(1), Resource: s.ColumnText(2), Kind: s.ColumnText(3), Namespaced: s.ColumnBool(4),
		Cluster: s.ColumnText(5),
	}
}
