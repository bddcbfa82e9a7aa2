package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/setup"
)

// clusters examines one cluster after the other, and adds up their objects. The total is unknown if one of them is.
func (x *examination) clusters(ctx context.Context) {
	names, recorded := map[string]string{}, x.recorded(ctx) // by identity, and by name
	for _, p := range x.parts {
		c := &examined{name: p.Name, setup: p.Setup, cluster: p.Cluster, host: x.host, journal: x.journal, objects: -1}
		if p.Err != nil {
			c.add(Server, "reachable", Error, p.Err.Error(), "Nothing of this cluster can be recorded.", "Correct its entry in the configuration, or the kubeconfig.")
		} else {
			c.all(ctx, len(x.parts) > 1)
		}
		if first := names[c.identity]; c.identity != "" && first != "" {
			c.add(Server, "identity", Error, fmt.Sprintf("this is the same cluster as %q", first),
				"tattler run records it under one of the two names, and not under the other: every change would be recorded twice.",
				"Correct the context of one of them, or remove it from clusters.")
		} else {
			names[c.identity] = p.Name
			c.compare(recorded)
		}
		x.findings = append(x.findings, c.findings...)
		if c.objects < 0 || x.objects < 0 {
			x.objects = -1
		} else {
			x.objects += c.objects
		}
	}
}

// recorded returns the identities of the clusters in the journal, by name; nil if that cannot be read.
func (x *examination) recorded(ctx context.Context) map[string]string {
	if _, err := os.Stat(x.journal); err != nil {
		return nil
	}
	ctx, cancel := x.host.within(ctx, checkJournal, "", journalTimeout)
	defer cancel()
	r, err := past.OpenReader(ctx, x.journal)
	if err != nil {
		return nil // journalFile says so
	}
	defer r.Close()
	streams, err := r.Streams(ctx)
	if err != nil {
		return nil
	}
	identities, newest := map[string]string{}, map[string]time.Time{}
	for i := range streams {
		s := &streams[i]
		if name := cmp.Or(s.Stream.Cluster, r.Cluster()); s.Head.Identity != "" && s.Head.At.After(newest[name]) {
			identities[name], newest[name] = s.Head.Identity, s.Head.At
		}
	}
	return identities
}

// compare compares the cluster's identity with those in the journal, as the daemon does.
func (x *examined) compare(recorded map[string]string) {
	if x.identity == "" || recorded[x.name] == x.identity {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if name != x.name && recorded[name] == x.identity {
			x.add(Server, "identity", Error, fmt.Sprintf("this is the cluster that the journal records as %q", name),
				"tattler run does not record it under another name: it would record deletions that did not happen.",
				fmt.Sprintf("Correct the context of %q, or name it %q.", x.name, name))
			return
		}
	}
}

// examined is a cluster under examination.
type examined struct {
	name    string // in the file; empty if the file has no clusters
	setup   *setup.Setup
	cluster *kube.Cluster
	host    host
	journal string // its path; empty if unknown

	// What earlier checks found out, for later ones.
	plan    *capture.Plan     // nil if the server did not answer
	allowed []capture.Planned // kinds that may be listed and watched, at least in one namespace
	objects int64             // counted objects; -1 if unknown
	// identity is the UID of the namespace kube-system; empty if unknown.
	identity string

	findings []Finding
}

func (x *examined) add(section Section, check string, level Level, title, meaning, action string) {
	x.findings = append(x.findings, finding(x.name, section, check, level, title, meaning, action))
}

// all runs the checks. Those of one of several clusters have a deadline in common, because others wait for them.
func (x *examined) all(ctx context.Context, several bool) {
	if several {
		var cancel context.CancelFunc
		ctx, cancel = x.host.within(ctx, checkCluster, x.name, clusterTimeout)
		defer cancel()
	}
	if x.server(ctx) {
		if x.name != "" {
			x.identify(ctx)
		}
		x.rights(ctx)
		x.features(ctx)
		x.count(ctx)
	}
}
