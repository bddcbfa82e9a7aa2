// Package rights lists the rights that a daemon needs, and asks the API server which of them are missing.
//
// Discovery and OpenAPI documents are not included: the cluster role system:discovery grants them to every
// authenticated user.
package rights

import (
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/capture"
)

// Right is a right that a daemon needs.
type Right struct {
	Group, Resource string
	// Namespace is empty for the whole cluster, Name for all objects.
	Namespace, Name string
	Verbs           []string
	// Without describes the loss without an optional right; empty if the right is required.
	Without string
}

// Covers reports whether r includes other.
func (r Right) Covers(other Right) bool {
	covers := func(have, want, all string) bool { return have == all || have == want }
	return covers(r.Group, other.Group, "*") && covers(r.Resource, other.Resource, "*") &&
		covers(r.Namespace, other.Namespace, "") && covers(r.Name, other.Name, "") &&
		!slices.ContainsFunc(other.Verbs, func(v string) bool { return !slices.Contains(r.Verbs, v) })
}

// Watching are the verbs for watched kinds. get verifies the server's history after a restart, so that it can resume
// without a list, and shows whether an object that left a selection was deleted.
var Watching = []string{"get", "list", "watch"}

const crdGroup, crdResource = "apiextensions.k8s.io", "customresourcedefinitions"

// Of returns the rights that a daemon needs for a plan, without duplicates.
//
// Source: the requests of packages informer and internal/capture.
func Of(p *capture.Plan) []Right {
	var all []Right
	named := []string{"kube-system"}
	for _, k := range p.Kinds {
		all = append(all, OfKind(k)...)
		for _, s := range k.Streams {
			if s.Namespace != "" && !slices.Contains(named, s.Namespace) {
				named = append(named, s.Namespace)
			}
		}
	}
	if len(p.Globs) > 0 {
		all = append(all, Right{
			Group: crdGroup, Resource: crdResource, Verbs: []string{"list", "watch"},
			Without: "kinds that appear are found within half a minute instead of at once",
		})
	}
	for _, ns := range named {
		without := "a missing namespace looks like an empty one"
		if ns == "kube-system" {
			without = "only its history distinguishes another cluster at the same address"
		}
		all = append(all, Right{Resource: "namespaces", Name: ns, Verbs: []string{"get"}, Without: without})
	}
	return Needed(all)
}

// OfKind returns the rights for a kind of a plan.
func OfKind(k capture.Planned) []Right {
	var all []Right
	for _, s := range k.Streams {
		all = append(all, Right{
			Group: k.Resource.Group, Resource: k.Resource.Resource, Namespace: s.Namespace, Name: s.Name, Verbs: Watching,
		})
	}
	return all
}

// Needed leaves out the rights that others cover.
func Needed(all []Right) []Right {
	var out []Right
	for i, r := range all {
		covered := false
		for j, other := range all {
			covered = covered || i != j && other.Covers(r) && (j < i || !r.Covers(other))
		}
		if !covered {
			out = append(out, r)
		}
	}
	return out
}

// OfGroups returns the rights for kinds that appear later in API groups that a glob selects completely, such as
// *.example.com.
func OfGroups(p *capture.Plan) []Right {
	var all []Right
	for _, g := range p.Globs {
		if group, ok := WholeGroup(p, g); ok {
			all = append(all, Within(g, Right{
				Group: group, Resource: "*", Verbs: Watching, Without: "kinds of the group that appear later are not watched",
			})...)
		}
	}
	return all
}

// Within returns a right for each namespace of a glob.
func Within(g capture.Glob, r Right) []Right {
	if len(g.Namespaces) == 0 {
		return []Right{r}
	}
	var out []Right
	for _, ns := range g.Namespaces {
		r.Namespace = ns
		out = append(out, r)
	}
	return out
}

// WholeGroup reports whether a glob selects every kind of one group of custom resources, in the same way. Then the
// configuration includes kinds that appear later.
func WholeGroup(p *capture.Plan, g capture.Glob) (group string, ok bool) {
	group, ok = strings.CutPrefix(g.Pattern, "*.")
	if !ok || strings.Contains(group, "*") || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") || g.Narrowed {
		return "", false
	}
	return group, !slices.ContainsFunc(p.Kinds, func(k capture.Planned) bool { return k.Resource.Group == group && k.Scope != g.Scope })
}
