package journal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// One journal can record several clusters. It is named after one of them; whatever belongs to another one is stored under
// its resource, an @ and the cluster's name: deployments.apps@staging. So streams, kinds and objects of two clusters never
// meet: each has versions, epochs, schemas and absences of its own. No resource has an @ in its name.

// formatClusters is the format of a journal with several clusters.
const formatClusters = format

// qualify returns the stored form of a resource of a cluster.
func qualify(resource, cluster string) string {
	if cluster == "" {
		return resource
	}
	return resource + "@" + cluster
}

// unqualify undoes qualify.
func unqualify(stored string) (resource, cluster string) {
	resource, cluster, _ = strings.Cut(stored, "@")
	return resource, cluster
}

// resource is the stored form of the kind's group-resource.
func resourceOf(k Kind) string { return qualify(k.GroupResource(), k.Cluster) }

// resource is the stored form of the stream's group-resource.
func (s Stream) resource() string { return qualify(s.GroupResource, s.Cluster) }

// ofCluster is a condition on a column that holds stored resources. Its argument is the cluster.
func ofCluster(column string) string {
	return fmt.Sprintf("CASE instr(%[1]s, '@') WHEN 0 THEN '' ELSE substr(%[1]s, instr(%[1]s, '@') + 1) END = ?", column)
}

// several raises the format before something of another cluster is stored.
func (db *db) several(cluster string) error {
	if cluster == "" {
		return nil
	}
	version, err := db.integer("PRAGMA user_version")
	if err != nil || version >= formatClusters {
		return err
	}
	return db.script(fmt.Sprintf("PRAGMA user_version = %d", formatClusters))
}

// foreign returns the name by which the file knows a cluster: empty for the one that it is named after.
func foreign(own, cluster string) string {
	if cluster == own {
		return ""
	}
	return cluster
}

// ClusterKey returns the Cluster of kinds and streams of the named cluster: empty for the one that the journal is named
// after.
func (j *Journal) ClusterKey(name string) string { return foreign(j.cluster, name) }

// clusters returns the clusters of the file as kinds name them, without duplicates; the own one, if it has kinds, is empty.
func (db *db) clusters() (all []string, err error) {
	err = db.query("SELECT DISTINCT substr(plural, instr(plural || '@', '@') + 1) FROM kinds ORDER BY 1", nil, func(s *sqlite3.Stmt) error {
		all = append(all, s.ColumnText(0))
		return nil
	})
	return all, err
}

// Clusters returns the names of the recorded clusters, sorted: one, unless the journal has kinds of others.
func (r *Reader) Clusters(ctx context.Context) (names []string, err error) {
	err = r.do(ctx, func() error {
		all, err := r.db.clusters()
		for _, c := range all {
			if c != "" {
				names = append(names, c)
			}
		}
		if len(names) == 0 || slices.Contains(all, "") {
			names = append(names, r.cluster)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// within returns the clusters that a query names, as kinds name them; nil if it names none.
func (db *db) within(names []string) (keys []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	own, err := db.cluster()
	for _, name := range names {
		keys = append(keys, foreign(own, name))
	}
	return keys, err
}

// stored returns the stored forms of group-resources in the clusters that a query names, or in all.
func (db *db) stored(resources, clusters []string) (all []string, err error) {
	if len(resources) == 0 {
		return nil, nil
	}
	keys, err := db.within(clusters)
	if err == nil && keys == nil {
		if keys, err = db.clusters(); len(keys) == 0 {
			keys = []string{""}
		}
	}
	for _, resource := range resources {
		for _, key := range keys {
			all = append(all, qualify(resource, key))
		}
	}
	return all, err
}

// kindsWithin returns the numbers of the kinds of the clusters that a query names, absences among them; nil if it names
// none.
func (db *db) kindsWithin(clusters []string) (map[int64]bool, error) {
	keys, err := db.within(clusters)
	if err != nil || keys == nil {
		return nil, err
	}
	ids := map[int64]bool{}
	for _, key := range keys {
		err := db.query("SELECT id FROM kinds WHERE "+ofCluster("plural"), []any{key}, func(s *sqlite3.Stmt) error {
			ids[s.ColumnInt64(0)] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Clusters returns the names of the clusters of which the journal has streams, sorted.
func (j *Journal) Clusters(ctx context.Context) (names []string, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.streams("", nil, func(_ int64, sh StreamHead) {
			name := sh.Stream.Cluster
			if name == "" {
				name = j.cluster
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		})
	})
	slices.Sort(names)
	return names, err
}
