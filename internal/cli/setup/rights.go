package setup

import (
	"slices"

	"github.com/tattler-dev/tattler/internal/capture"
)

// Right is a right that a daemon needs.
type Right struct {
	Group, Resource string
	// Namespace is empty for the whole cluster, Name for all objects.
	Namespace, Name string
	Verbs           []string
	// Without describes the loss without an optional right. The daemon does not report a missing optional right.
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

// Rights returns the rights that a daemon needs for a plan, without duplicates. Discovery and OpenAPI documents are not
// included: the cluster role system:discovery grants them to every authenticated user.
//
// Source: the requests of packages informer and internal/capture.
func Rights(p *capture.Plan) []Right {
	var all []Right
	named := []string{"kube-system"}
	for _, k := range p.Kinds {
		all = append(all, KindRights(k)...)
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

// KindRights returns the rights for a kind of a plan.
func KindRights(k capture.Planned) []Right {
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
