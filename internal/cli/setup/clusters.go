package setup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Watched is one of several clusters of a configuration.
type Watched struct {
	config.NamedCluster
	// Kube selects the cluster.
	Kube kube.Flags
	// Scopes select its watched objects.
	Scopes []capture.Scope
}

// watched returns the clusters of a configuration; nil if it has only one.
func (f *Flags) watched(c *config.Config) ([]Watched, error) {
	if len(c.Clusters) == 0 {
		return nil, nil
	}
	if f.Kube.Context != "" {
		return nil, usage.Errorf("--context: the file has clusters, which name their contexts: omit the flag")
	}
	var all []Watched
	for _, n := range c.Clusters {
		w := Watched{NamedCluster: n, Kube: f.Kube}
		w.Kube.Context, w.Kube.Pod = n.Context, n.InCluster
		if n.Kubeconfig != "" {
			w.Kube.Kubeconfig = n.Kubeconfig
		}
		of := *c
		if len(n.Watch) > 0 {
			of.Watch = n.Watch
		}
		w.Scopes = f.scopes(&of)
		all = append(all, w)
	}
	return all, nil
}

// Several reports whether the configuration has clusters.
func (s *Setup) Several() bool { return len(s.Watched) > 0 }

// Only returns the setup of the cluster that Flags.Cluster names, as if the configuration had no other, and the cluster.
func (f *Flags) Only(s *Setup) (*Setup, *kube.Cluster, error) {
	if !s.Several() {
		if f.Cluster != "" {
			return nil, nil, usage.Errorf("--cluster: the configuration has no clusters: omit the flag")
		}
		cluster, err := f.Kube.Load()
		return s, cluster, err
	}
	i := slices.IndexFunc(s.Watched, func(w Watched) bool { return w.Name == f.Cluster })
	if i < 0 {
		var names []string
		for _, w := range s.Watched {
			names = append(names, w.Name)
		}
		if f.Cluster == "" {
			return nil, nil, usage.Errorf("the configuration has several clusters: choose one with --cluster %s", strings.Join(names, ", or --cluster "))
		}
		return nil, nil, usage.Errorf("--cluster: the configuration has no cluster %q: it has %s", f.Cluster, strings.Join(names, ", "))
	}
	return s.only(i)
}

// Part is a cluster of a configuration, and the setup for it, as if the configuration had no other.
type Part struct {
	// Name is the cluster's name in the file; empty if the file has no clusters.
	Name string
	// Setup and Cluster are nil if Err says why the cluster is unknown.
	Setup   *Setup
	Cluster *kube.Cluster
	Err     error
}

// Parts returns the clusters of a setup: all of them, or the one that Flags.Cluster names. The error concerns the flags, and
// for one cluster also how to reach it; of several, each has its own.
func (f *Flags) Parts(s *Setup) ([]Part, error) {
	if !s.Several() || f.Cluster != "" {
		one, cluster, err := f.Only(s)
		if err != nil {
			return nil, err
		}
		return []Part{{Name: f.Cluster, Setup: one, Cluster: cluster}}, nil
	}
	var all []Part
	for i := range s.Watched {
		p := Part{Name: s.Watched[i].Name}
		p.Setup, p.Cluster, p.Err = s.only(i)
		all = append(all, p)
	}
	return all, nil
}

// WebOf returns the part of the web page that needs rights in a cluster of Watched: the first one authenticates viewers, and
// others review their access if they have the same users.
func (s *Setup) WebOf(i int) config.Web {
	w := s.Web
	if i > 0 && !s.Watched[i].SameUsers { // no reviews are made here
		w = config.Web{}
	}
	w.ReviewsOnly = i > 0
	return w
}

func (s *Setup) only(i int) (*Setup, *kube.Cluster, error) {
	w := &s.Watched[i]
	cluster, err := w.Kube.Load()
	if err != nil {
		return nil, nil, s.Blame(fmt.Sprintf("clusters[%d]", i), "%v", err)
	}
	one := *s
	c := *s.Config
	one.Config, one.Scopes, one.Watched, one.part = &c, w.Scopes, nil, true
	if len(w.Watch) > 0 {
		c.Watch, one.within = w.Watch, fmt.Sprintf("clusters[%d].", i)
	}
	c.Cluster.Name, c.Clusters = w.Name, nil
	c.Web = s.WebOf(i)
	return &one, cluster, nil
}

// errNoJournal says that several clusters have no default journal.
var errNoJournal = errors.New("several clusters have no default journal: set journal.path or use --journal")
