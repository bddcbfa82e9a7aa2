package past

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Within returns the selected ones of the recorded clusters: those that --cluster names, or all.
func (j *Journal) Within(ctx context.Context, names []string) ([]string, error) {
	known, err := j.Clusters(ctx)
	if err != nil || len(names) == 0 {
		return known, err
	}
	if err := journal.CheckClusters(names, known); err != nil {
		return nil, usage.Errorf("--cluster: %v", err)
	}
	return names, nil
}

// ClusterOf returns the name of a kind's cluster.
func (j *Journal) ClusterOf(k journal.Kind) string { return k.ClusterOr(j.Cluster()) }

// SeveralClustersError says that a name means objects of several clusters.
type SeveralClustersError struct {
	What     string
	Clusters []string // sorted
}

func (e *SeveralClustersError) Error() string {
	return fmt.Sprintf("%s is in several clusters: choose one with --cluster %s", e.What, strings.Join(e.Clusters, ", or --cluster "))
}

// OneCluster returns a *SeveralClustersError if objects that a query selects existed in more than one cluster at one of the
// given times, or may have. what names them in the error.
func (j *Journal) OneCluster(ctx context.Context, what string, q journal.Query, at ...time.Time) error {
	if known, err := j.Within(ctx, q.Clusters); err != nil || len(known) < 2 {
		return err
	}
	var clusters []string
	for _, t := range at {
		for s, err := range j.At(ctx, q, t) {
			if err != nil {
				return err
			}
			if name := j.ClusterOf(s.Kind); !slices.Contains(clusters, name) {
				clusters = append(clusters, name)
			}
		}
	}
	if len(clusters) < 2 {
		return nil
	}
	slices.Sort(clusters)
	return &SeveralClustersError{What: what, Clusters: clusters}
}
