package capture

import (
	"path"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/rules"
	"github.com/tattler-dev/tattler/internal/usage"
)

// target is a kind to watch: all its objects, those with given names, or those that a named object owns.
type target struct {
	Resource
	names []string // empty: all
	owned bool     // also the objects owned by a named one, directly or indirectly
	scope *Scope
}

// Owns returns, by group-resource, the kinds whose objects a kind's objects own as controllers. Custom
// resources have no entry: the API does not state what they own.
func Owns() map[string][]string {
	return map[string][]string{
		"deployments.apps":       {"replicasets.apps"},
		"replicasets.apps":       {"pods"},
		"statefulsets.apps":      {"pods"},
		"daemonsets.apps":        {"pods"},
		"replicationcontrollers": {"pods"},
		"cronjobs.batch":         {"jobs.batch"},
		"jobs.batch":             {"pods"},
	}
}

// ownedKinds returns the kinds whose objects a kind's objects own, directly or indirectly.
func ownedKinds(resource string) (all []string) {
	for _, r := range Owns()[resource] {
		all = append(append(all, r), ownedKinds(r)...)
	}
	return all
}

// targets parses kubectl's forms: TYPE[,TYPE…] [NAME…] or TYPE/NAME…. A type may be a glob; without
// arguments it is *. With follow, it adds the kinds that named objects own.
func (c *Catalog) targets(args []string, follow bool) (ts []target, globs []string, err error) {
	switch {
	case len(args) == 0:
		return nil, []string{"*"}, nil
	case slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") }):
		ts, err = c.objects(args)
	default:
		ts, globs, err = c.types(args[0], args[1:])
	}
	if err != nil {
		return nil, nil, err
	}
	for _, t := range slices.Clone(ts) {
		if len(t.names) == 0 || !follow {
			continue
		}
		for _, gr := range ownedKinds(t.GroupResource()) {
			resource, group, _ := strings.Cut(gr, ".")
			if r, ok := c.Find(group, resource, "v1"); ok {
				merge(&ts, target{Resource: r, owned: true})
			}
		}
	}
	return ts, globs, nil
}

// objects parses TYPE/NAME….
func (c *Catalog) objects(args []string) (ts []target, err error) {
	for _, a := range args {
		typ, name, _ := strings.Cut(a, "/")
		if typ == "" || name == "" || strings.Contains(name, "/") {
			return nil, usage.Errorf("%q is not TYPE/NAME; where one argument has that form, all must have it", a)
		}
		if IsKindGlob(typ) {
			return nil, usage.Errorf("%q: a glob of kinds takes no names", a)
		}
		if err := c.add(&ts, typ, []string{name}); err != nil {
			return nil, err
		}
	}
	return ts, nil
}

// types parses TYPE[,TYPE…], for all objects or those with the given names.
func (c *Catalog) types(list string, names []string) (ts []target, globs []string, err error) {
	for _, typ := range strings.Split(list, ",") {
		lower := strings.ToLower(typ)
		switch {
		case typ == "":
			return nil, nil, usage.Errorf("%q names an empty type", list)
		case !IsKindGlob(typ):
			if err := c.add(&ts, typ, names); err != nil {
				return nil, nil, err
			}
		case len(names) > 0:
			return nil, nil, usage.Errorf("%q: a glob of kinds takes no names", typ)
		case rules.CheckResource(lower) != nil:
			return nil, nil, usage.Errorf("%q is not a glob of kinds: want plural and group, such as deploy* or *.example.com", typ)
		default:
			globs = append(globs, lower)
		}
	}
	return ts, globs, nil
}

func (c *Catalog) add(ts *[]target, typ string, names []string) error {
	rs, err := c.Resolve(typ)
	if err != nil {
		return err
	}
	for _, r := range rs {
		if len(names) == 0 {
			merge(ts, target{Resource: r})
		}
		for _, name := range names {
			merge(ts, target{Resource: r, names: []string{name}})
		}
	}
	return nil
}

// merge keeps one target per kind, so that no object is watched or reported twice.
func merge(ts *[]target, t target) {
	for i, have := range *ts {
		if have.GroupResource() != t.GroupResource() {
			continue
		}
		switch {
		case have.all() || t.all():
			(*ts)[i].names, (*ts)[i].owned = nil, false
		default:
			(*ts)[i].owned = have.owned || t.owned
			for _, n := range t.names {
				if !slices.Contains((*ts)[i].names, n) {
					(*ts)[i].names = append(slices.Clip((*ts)[i].names), n)
				}
			}
		}
		return
	}
	*ts = append(*ts, t)
}

// all reports whether every object of the kind is wanted.
func (t target) all() bool { return len(t.names) == 0 && !t.owned }

// Namespaces selects the watched namespaces. The zero value is the whole cluster.
type Namespaces struct {
	// Include and Exclude are names or globs (*, ?, [a-z]). An empty Include selects every namespace and the
	// cluster-scoped kinds.
	Include, Exclude []string
}

// Validate checks the globs, and that the exclusions leave something: an empty selection would mean every
// namespace.
func (n Namespaces) Validate() error {
	for _, p := range slices.Concat(n.Include, n.Exclude) {
		if p == "" {
			return usage.Errorf("an empty namespace name")
		}
		if _, err := path.Match(p, ""); err != nil {
			return usage.Errorf("invalid namespace pattern %q: %v", p, err)
		}
	}
	if len(n.Include) > 0 && !slices.ContainsFunc(n.Include, func(p string) bool {
		return isGlob(p) || !matchAny(n.Exclude, p)
	}) {
		return usage.Errorf("nothing to watch: of the namespaces %s, all are excluded", strings.Join(n.Include, ", "))
	}
	return nil
}

// exact returns the included namespaces, each once, if the server can select them individually. It is not empty
// if Include is not empty and has no globs; see Validate.
func (n Namespaces) exact() []string {
	if slices.ContainsFunc(n.Include, isGlob) {
		return nil
	}
	names := slices.DeleteFunc(slices.Sorted(slices.Values(n.Include)), func(ns string) bool { return matchAny(n.Exclude, ns) })
	return slices.Compact(names)
}

// excluded returns the field selector for the exclusions that are names. The server cannot match globs.
func (n Namespaces) excluded() string {
	if len(n.Include) > 0 {
		return ""
	}
	var terms []string
	for _, ns := range n.Exclude {
		if !isGlob(ns) {
			terms = append(terms, "metadata.namespace!="+ns)
		}
	}
	return strings.Join(terms, ",")
}

// keep returns the filter for the namespaces that the server cannot select; nil if it can select them all.
func (n Namespaces) keep() func(namespace, name string) bool {
	if !slices.ContainsFunc(slices.Concat(n.Include, n.Exclude), isGlob) {
		return nil
	}
	return func(ns, _ string) bool {
		return (len(n.Include) == 0 || matchAny(n.Include, ns)) && !matchAny(n.Exclude, ns)
	}
}

// String describes the namespaces for display.
func (n Namespaces) String() string {
	s := "all namespaces"
	switch {
	case len(n.Include) == 1 && !isGlob(n.Include[0]):
		s = "namespace " + n.Include[0]
	case len(n.Include) > 0:
		s = "namespaces " + strings.Join(n.Include, ", ")
	}
	if len(n.Exclude) > 0 {
		s += " without " + strings.Join(n.Exclude, ", ")
	}
	return s
}

func isGlob(s string) bool { return strings.ContainsAny(s, `*?[\`) }

func matchAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, s)
		return ok && err == nil
	})
}
