package rbac

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/config"
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
	all := append(setup.Rights(p), setup.WebRights(web)...)
	for _, g := range p.Globs {
		group, whole := wholeGroup(p, g)
		switch {
		case whole:
			all = append(all, within(g, setup.Right{Group: group, Resource: "*", Verbs: setup.Watching})...)
		case wildcard:
			all = append(all, within(g, setup.Right{Group: "*", Resource: "*", Verbs: []string{"list", "watch"}})...)
		}
	}
	byNamespace := map[string][]setup.Right{"": nil}
	for _, r := range setup.Needed(all) {
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
	}
	var out []role
	for _, ns := range slices.Sorted(maps.Keys(byNamespace)) {
		out = append(out, role{ns, rules(byNamespace[ns])})
	}
	return out
}

// within returns a right for each namespace of a glob.
func within(g capture.Glob, r setup.Right) []setup.Right {
	if len(g.Namespaces) == 0 {
		return []setup.Right{r}
	}
	var out []setup.Right
	for _, ns := range g.Namespaces {
		r.Namespace = ns
		out = append(out, r)
	}
	return out
}

// wholeGroup reports whether a glob selects every kind of one group of custom resources, in the same way. Then the
// configuration includes kinds that appear later.
func wholeGroup(p *capture.Plan, g capture.Glob) (group string, ok bool) {
	group, ok = strings.CutPrefix(g.Pattern, "*.")
	if !ok || strings.Contains(group, "*") || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") || g.Narrowed {
		return "", false
	}
	return group, !slices.ContainsFunc(p.Kinds, func(k capture.Planned) bool { return k.Resource.Group == group && k.Scope != g.Scope })
}

// rules merges rights that differ only in the resource, or only in the name.
func rules(rights []setup.Right) []rule {
	var out []rule
	for _, r := range rights {
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

func named(r setup.Right) []string {
	if r.Name == "" {
		return nil
	}
	return []string{r.Name}
}

func why(r setup.Right) string {
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
