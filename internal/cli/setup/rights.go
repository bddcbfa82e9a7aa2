package setup

import (
	"slices"

	"github.com/tattler-dev/tattler/internal/capture"
)

// Right is something that a daemon must be allowed to do.
type Right struct {
	Group, Resource string
	// Namespace is empty for the whole cluster, Name for all objects.
	Namespace, Name string
	Verbs           []string
	// Without is what is lost without it, where that is little: the daemon does not complain.
	Without string
}

// Covers tells whether who has r needs no other.
func (r Right) Covers(other Right) bool {
	covers := func(have, want, all string) bool { return have == all || have == want }
	return covers(r.Group, other.Group, "*") && covers(r.Resource, other.Resource, "*") &&
		covers(r.Namespace, other.Namespace, "") && covers(r.Name, other.Name, "") &&
		!slices.ContainsFunc(other.Verbs, func(v string) bool { return !slices.Contains(r.Verbs, v) })
}

// Watching are the verbs for what is watched: list and watch tell what happens; get tells after a restart
// that the history is the one that was recorded, so that it goes on without a list, and whether an object
// that left a selection was deleted.
var Watching = []string{"get", "list", "watch"}

const crdGroup, crdResource = "apiextensions.k8s.io", "customresourcedefinitions"

// Rights are what a daemon needs of the API server for a plan, each once. Discovery and OpenAPI documents
// come besides: the cluster role system:discovery gives them to every authenticated user.
//
// Source: what the packages informer and internal/capture ask for.
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
		without := "a namespace that does not exist is not told from an empty one"
		if ns == "kube-system" {
			without = "another cluster at the same address is told from this one by its history alone"
		}
		all = append(all, Right{Resource: "namespaces", Name: ns, Verbs: []string{"get"}, Without: without})
	}
	return Needed(all)
}

// KindRights are the rights for a kind of a plan.
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
