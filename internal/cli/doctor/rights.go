package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/rights"
)

// grant says how to get a right in one of several clusters, or in the only one.
func grant(cluster string) string {
	return rbac(cluster) + " prints the roles that grant it: apply them, or leave the kind out."
}

// rbac is the command for the rights in a cluster.
func rbac(cluster string) string {
	if cluster != "" {
		return "tattler rbac --cluster " + cluster + " with the same file"
	}
	return "tattler rbac with the same flags"
}

// rights reviews what may be watched.
func (x *examined) rights(ctx context.Context) {
	ctx, cancel := x.host.within(ctx, checkRights, x.name, rightsTimeout)
	defer cancel()
	reviewer, err := rights.NewReviewer(x.cluster.Config)
	var lacks []rights.Lack
	if err == nil {
		all := slices.Concat(rights.Of(x.plan), rights.OfGroups(x.plan), setup.WebRights(x.setup.Web))
		lacks, err = reviewer.Lacking(ctx, all)
	}
	if err != nil {
		x.allowed = x.plan.Kinds // as far as is known
		x.add(Rights, "review", Warning, "the rights are unknown: "+x.cause(err), "", "Check that the user may create selfsubjectaccessreviews, which the cluster role system:basic-user grants.")
		return
	}
	for _, k := range x.plan.Kinds {
		if slices.ContainsFunc(rights.OfKind(k), func(r rights.Right) bool { return mayWatch(r, lacks) }) {
			x.allowed = append(x.allowed, k)
		}
	}
	x.lacking(lacks)
	records := "tattler run starts, and records nothing"
	if x.name != "" {
		records += " of this cluster"
	}
	switch {
	case len(x.allowed) > 0:
		x.add(Rights, "watch", OK, terminal.Count(len(x.allowed), "kind")+" may be listed and watched", "", "")
	case len(x.plan.Kinds) > 0:
		x.add(Rights, "watch", Error, "nothing of this may be watched", records+".", rbac(x.name)+" prints the roles that are needed.")
	}
	x.user(ctx, reviewer)
}

// user says whose rights these are: often not those of the daemon.
func (x *examined) user(ctx context.Context, reviewer *rights.Reviewer) {
	name, err := reviewer.User(ctx)
	switch {
	case err != nil:
		x.add(Rights, "user", Note, "whose rights these are is unknown: "+x.cause(err), "", "")
	case strings.HasPrefix(name, "system:serviceaccount:"):
		x.add(Rights, "user", OK, "these are the rights of "+name, "", "")
	default:
		x.add(Rights, "user", Note, "these are the rights of "+name, "A daemon in the cluster has those of its service account.", "To examine them: --as system:serviceaccount:NAMESPACE:NAME")
	}
}

// mayWatch reports whether a right allows listing and watching.
func mayWatch(r rights.Right, lacks []rights.Lack) bool {
	return !slices.ContainsFunc(lacks, func(l rights.Lack) bool {
		return l.Subject() == r.Subject() && l.Namespace == r.Namespace && l.Err == nil && required(&l)
	})
}

// required reports whether the kind cannot be watched without the missing verbs.
func required(l *rights.Lack) bool {
	return l.Without == "" && (slices.Contains(l.Missing, "list") || slices.Contains(l.Missing, "watch"))
}

// lacking adds a finding for the kinds that lack the same.
func (x *examined) lacking(lacks []rights.Lack) {
	type group struct {
		lack     rights.Lack
		subjects []string
	}
	var groups []*group
	for _, l := range lacks {
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.lack.Text() == l.Text() && g.lack.Without == l.Without && required(&g.lack) == required(&l)
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{lack: l})
		}
		groups[i].subjects = append(groups[i].subjects, l.Subject())
	}
	for _, g := range groups {
		subject, l := listed(g.subjects), &g.lack
		switch {
		case l.Err != nil:
			x.add(Rights, "unknown", Warning, fmt.Sprintf("%s: the rights are unknown: %s", subject, x.cause(l.Err)), "", "Try again.")
		case required(l):
			x.add(Rights, "missing", Error, subject+": "+l.Text(), "Their changes are not recorded.", grant(x.name))
		case l.Without != "":
			x.add(Rights, "missing", Warning, subject+": "+l.Text(), strings.ToUpper(l.Without[:1])+l.Without[1:]+".", grant(x.name))
		default:
			x.add(Rights, "missing", Warning, subject+": "+l.Text(),
				"A restart must list again, so that versions in between may be missed; and whether an object that leaves a selection was deleted is unknown.", grant(x.name))
		}
	}
}

// count counts the objects that may be listed and would be watched. They stay unknown if none could be counted.
func (x *examined) count(ctx context.Context) {
	counter, err := setup.NewCounter(x.cluster.Config)
	if err != nil {
		return
	}
	ctx, cancel := x.host.within(ctx, checkCount, x.name, countTimeout)
	defer cancel()
	type answer struct {
		n   int64
		err error
	}
	answers := make(chan answer)
	sent := 0
	for _, k := range x.allowed {
		for _, sel := range k.Streams {
			sent++
			go func(k capture.Planned) {
				n, _, err := counter.Count(ctx, k.Resource, sel)
				answers <- answer{n, err}
			}(k)
		}
	}
	x.objects = 0
	failed := 0
	for range sent {
		a := <-answers
		if a.err != nil {
			failed++
		}
		x.objects += a.n
	}
	if failed == sent {
		x.objects = -1
	}
}
