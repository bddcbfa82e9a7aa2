package capture

import (
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/rules"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

// target is a kind to watch: all its objects, those with given names, or those that a named object owns.
type target struct {
	Resource
	names []string // empty: all
	owned bool     // also the objects owned by a named one, directly or indirectly
	scope *Scope
}

// ownedKinds returns the kinds whose objects a kind's objects own, directly or indirectly.
func ownedKinds(resource string) (all []string) {
	for _, r := range selection.Owns()[resource] {
		all = append(append(all, r), ownedKinds(r)...)
	}
	return all
}

// targets looks up the kinds of selection.Words; a type may be a glob, and without arguments it is *. With follow, it adds
// the kinds that named objects own.
func (c *Catalog) targets(args []string, follow bool) (ts []target, globs []string, err error) {
	words, err := selection.Words(args)
	if err != nil {
		return nil, nil, err
	}
	if len(words) == 0 {
		return nil, []string{"*"}, nil
	}
	for _, w := range words {
		lower := strings.ToLower(w.Type)
		switch {
		case !IsKindGlob(w.Type):
			if err := c.add(&ts, w.Type, w.Names); err != nil {
				return nil, nil, err
			}
		case len(w.Names) > 0:
			return nil, nil, usage.Errorf("%q: a glob of kinds takes no names", w.Type)
		case rules.CheckResource(lower) != nil:
			return nil, nil, usage.Errorf("%q is not a glob of kinds: want plural and group, such as deploy* or *.example.com", w.Type)
		default:
			globs = append(globs, lower)
		}
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

// exact returns the included namespaces, each once, if the server can select them individually. It is not empty
// if Include is not empty and has no globs; see Namespaces.Validate.
func exact(n selection.Namespaces) []string {
	if slices.ContainsFunc(n.Include, selection.IsGlob) {
		return nil
	}
	return byName(n)
}

// byName returns the namespaces that are included by name, sorted and each once.
func byName(n selection.Namespaces) []string {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(n.Include)), func(ns string) bool { return selection.IsGlob(ns) || !n.Has(ns) })
	return slices.Compact(names)
}

// excluded returns the field selector for the exclusions that are names. The server cannot match globs.
func excluded(n selection.Namespaces) string {
	if len(n.Include) > 0 {
		return ""
	}
	var terms []string
	for _, ns := range n.Exclude {
		if !selection.IsGlob(ns) {
			terms = append(terms, "metadata.namespace!="+ns)
		}
	}
	return strings.Join(terms, ",")
}

// keep returns the filter for the namespaces that the server cannot select; nil if it can select them all.
func keep(n selection.Namespaces) func(namespace, name string) bool {
	if !slices.ContainsFunc(slices.Concat(n.Include, n.Exclude), selection.IsGlob) {
		return nil
	}
	return func(ns, _ string) bool { return n.Has(ns) }
}
