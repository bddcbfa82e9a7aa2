package ops

import (
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

// With several clusters, these metrics have the label cluster, and readiness names the clusters.

// clusterLabel is the label of the metrics of one of several clusters.
const clusterLabel = "cluster"

// of returns the part of a status that concerns one of several clusters.
func of(s *control.Status, c *control.Cluster) control.Status {
	one := *s
	one.Settled, one.Away, one.AwaySince, one.UnfilledRules = c.Settled, c.Away, c.AwaySince, c.UnfilledRules
	one.Streams, one.Audits, one.Clusters = nil, nil, nil
	for i := range s.Streams {
		if s.Streams[i].Cluster == c.Name {
			one.Streams = append(one.Streams, s.Streams[i])
		}
	}
	for i := range s.Audits {
		if s.Audits[i].Cluster == c.Name {
			one.Audits = append(one.Audits, s.Audits[i])
		}
	}
	return one
}

// each calls f with each cluster's part of a status, or with the status if there is only one cluster.
func each(s *control.Status, f func(cluster string, s *control.Status)) {
	if len(s.Clusters) == 0 {
		f("", s)
		return
	}
	for i := range s.Clusters {
		one := of(s, &s.Clusters[i])
		f(s.Clusters[i].Name, &one)
	}
}

// notWatched returns why not everything of the cluster that a status concerns is recorded.
func notWatched(s *control.Status, now time.Time) (reasons []string) {
	if !s.Settled {
		reasons = append(reasons, "starting: not every kind is live yet")
	}
	if s.Away != "" && (!s.Settled || now.Sub(s.AwaySince) > reconnectGrace) { // a start waits for it
		reasons = append(reasons, "the API server cannot be reached"+since(s.AwaySince, now))
	}
	return reasons
}

// named begins each reason with the name of one of several clusters.
func named(cluster string, reasons []string) []string {
	if cluster == "" {
		return reasons
	}
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("cluster %s: %s", cluster, r)
	}
	return reasons
}
