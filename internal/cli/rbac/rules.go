package rbac

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/rights"
)

// role has the rules for a namespace, or for the whole cluster if namespace is empty.
type role struct {
	namespace string
	rules     []rule
}

// rule is an RBAC rule and its reason.
type rule struct {
	group            string
	resources, names []string
	verbs            []string
	why              string
}

const (
	whySecrets = "Secrets: their values are read, but replaced by keyed hashes before anything is written. " +
		"To avoid reading them, exclude secrets in the configuration and delete this rule."
	whyGroup    = "Every kind of a group that a glob selects completely, including kinds that appear later."
	whyWildcard = "Kinds that appear later (--wildcard). This grants everything: RBAC cannot exclude Secrets or anything else. " +
		"The verbs do not include get, because it allows more than objects (pods/exec, nodes/proxy). So a restart lists " +
		"these kinds again, and versions in between are missed: print the rights again when a kind appears."
)

// roles returns the roles for a plan and a web page: the cluster's first, which may be empty, then one per namespace.
func roles(p *capture.Plan, wildcard bool, web config.Web) []role {
	all := append(rights.Of(p), setup.WebRights(web)...)
	for _, g := range p.Globs {
		group, whole := rights.WholeGroup(p, g)
		switch {
		case whole:
			all = append(all, rights.Within(g, rights.Right{Group: group, Resource: "*", Verbs: rights.Watching})...)
		case wildcard:
			all = append(all, rights.Within(g, rights.Right{Group: "*", Resource: "*", Verbs: []string{"list", "watch"}})...)
		}
	}
	byNamespace := map[string][]rights.Right{"": nil}
	for _, r := range rights.Needed(all) {
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
	}
	var out []role
	for _, ns := range slices.Sorted(maps.Keys(byNamespace)) {
		out = append(out, role{ns, rules(byNamespace[ns])})
	}
	return out
}

// rules merges rights that differ only in the resource, or only in the name.
func rules(all []rights.Right) []rule {
	var out []rule
	for _, r := range all {
		add(&out, rule{group: r.Group, resources: []string{r.Resource}, names: named(r), verbs: r.Verbs, why: why(r)})
	}
	for _, r := range out {
		slices.Sort(r.resources)
		slices.Sort(r.names)
	}
	slices.SortStableFunc(out, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(len(a.why), len(b.why)), slices.Compare(a.resources, b.resources))
	})
	return out
}

// add merges a rule with an existing one, if the result grants no more than both.
func add(out *[]rule, r rule) {
	for i := range *out {
		have := &(*out)[i]
		if have.group != r.group || have.why != r.why || !slices.Equal(have.verbs, r.verbs) {
			continue
		}
		switch {
		case slices.Equal(have.names, r.names):
			have.resources = append(have.resources, r.resources...)
			return
		case have.names != nil && r.names != nil && slices.Equal(have.resources, r.resources):
			have.names = append(have.names, r.names...)
			return
		}
	}
	*out = append(*out, r)
}

func named(r rights.Right) []string {
	if r.Name == "" {
		return nil
	}
	return []string{r.Name}
}

func why(r rights.Right) string {
	switch {
	case r.Without != "":
		return "Without it " + r.Without + "."
	case r.Group == "*":
		return whyWildcard
	case r.Resource == "*":
		return whyGroup
	case r.Group == "" && r.Resource == "secrets":
		return whySecrets
	}
	return ""
}
