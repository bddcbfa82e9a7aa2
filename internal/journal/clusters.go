package journal

import (
	"context"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// One journal can record several clusters. Streams, kinds and objects belong to a resource, and each resource to a cluster.
// So those of two clusters never meet: each has versions, epochs, schemas and absences of its own.

// ownCluster is the number of the cluster that the journal is named after.
const ownCluster = 1

// clusterKey is a cluster's name as Kinds and Streams have it: empty for the own one. It needs clusters c.
const clusterKey = "iif(c.id = 1, '', c.name)"

// ofResources joins a resource r and its cluster c to rows with a column resource.
const ofResources = " JOIN resources r ON r.id = resource JOIN clusters c ON c.id = r.cluster "

// cluster returns the name of the cluster that the journal is named after.
func (db *db) cluster() (string, error) {
	names, err := db.texts("SELECT name FROM clusters WHERE id = ?", ownCluster)
	if err == nil && len(names) == 0 {
		err = damaged(db.path, "clusters", "no cluster %d", ownCluster)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// clusterID returns the number of a cluster (see Kind for its name); 0 if the journal does not have it.
func (db *db) clusterID(name string) (int64, error) {
	if name == "" {
		return ownCluster, nil
	}
	return db.integer("SELECT id FROM clusters WHERE name = ?", name)
}

// resource is a row of resources.
type resource struct {
	id      int64
	cluster string // as in Kind
	name    string // of the group-resource
}

// resources returns some group-resources of some clusters, by number. No names, or no clusters, mean all.
func (db *db) resources(names, clusters []string) (all []resource, err error) {
	err = db.query("SELECT r.id, r.plural, r.\"group\", "+clusterKey+", c.name FROM resources r JOIN clusters c ON c.id = r.cluster ORDER BY r.id", nil,
		func(s *sqlite3.Stmt) error {
			r := resource{s.ColumnInt64(0), s.ColumnText(3), Kind{Resource: s.ColumnText(1), Group: s.ColumnText(2)}.GroupResource()}
			if anyOr(names, r.name) && anyOr(clusters, s.ColumnText(4)) {
				all = append(all, r)
			}
			return nil
		})
	return all, err
}

// anyOr reports whether a list has a name, or is empty.
func anyOr(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }

// resourceID returns the number of a group-resource of a cluster (see Kind for its name); 0 if the journal does not have it.
func (db *db) resourceID(cluster, name string) (int64, error) {
	of, err := db.clusterID(cluster)
	if err != nil {
		return 0, err
	}
	plural, group, _ := strings.Cut(name, ".")
	return db.integer(`SELECT id FROM resources WHERE cluster = ? AND "group" = ? AND plural = ?`, of, group, plural)
}

// ClusterKey returns the Cluster of kinds and streams of the named cluster: empty for the one that the journal is named
// after.
func (j *Journal) ClusterKey(name string) string {
	if name == j.cluster {
		return ""
	}
	return name
}

// Clusters returns the names of the recorded clusters, sorted: one, unless the journal has kinds of others.
func (r *Reader) Clusters(ctx context.Context) (names []string, err error) {
	err = r.do(ctx, func() error {
		names, err = r.db.clusters()
		return err
	})
	return names, err
}

// clusters returns the names of the clusters that have resources, sorted; in a new journal, of the own one.
func (db *db) clusters() ([]string, error) {
	return db.texts(`SELECT name FROM clusters WHERE id IN (SELECT cluster FROM resources) OR id = ? AND NOT EXISTS (SELECT 1 FROM resources)
		ORDER BY name`, ownCluster)
}

// Clusters returns the names of the clusters of which the journal has streams, sorted.
func (j *Journal) Clusters(ctx context.Context) (names []string, err error) {
	err = j.do(ctx, "read", func() error {
		names, err = j.db.texts(`SELECT DISTINCT c.name FROM streams`+ofResources+`WHERE pipeline <> ? ORDER BY c.name`, forgotten)
		return err
	})
	return names, err
}

// ShortNames returns the API servers' short names by group-resource, those of all clusters together.
func (r *Reader) ShortNames(ctx context.Context) (names map[string][]string, err error) {
	err = r.do(ctx, func() (err error) {
		names, err = r.db.shortNames()
		return err
	})
	return names, err
}

// ShortNames is as of a Reader.
func (j *Journal) ShortNames(ctx context.Context) (names map[string][]string, err error) {
	err = j.do(ctx, "read", func() (err error) {
		names, err = j.db.shortNames()
		return err
	})
	return names, err
}

func (db *db) shortNames() (map[string][]string, error) {
	names := map[string][]string{}
	err := db.query(`SELECT plural, "group", short FROM resources WHERE short <> '' ORDER BY id`, nil, func(s *sqlite3.Stmt) error {
		of := Kind{Resource: s.ColumnText(0), Group: s.ColumnText(1)}.GroupResource()
		for _, name := range strings.Fields(s.ColumnText(2)) {
			if !slices.Contains(names[of], name) {
				names[of] = append(names[of], name)
			}
		}
		return nil
	})
	return names, err
}
