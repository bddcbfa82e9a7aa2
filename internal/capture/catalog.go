package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/tattler-dev/tattler/internal/rules"
	"github.com/tattler-dev/tattler/internal/spell"
)

// Catalog lists the resource types that the server reports by discovery.
type Catalog struct {
	// all holds every served version of every kind, in discovery's order: the server's priority.
	all []Resource
	// preferred holds one version per group and resource, in the same order.
	preferred []Resource
	// failed holds the groups that did not answer, such as an aggregated API that is down. Their types are
	// unknown, not absent.
	failed map[string]error
	// unwatchable holds the verbs of resources that cannot be listed and watched.
	unwatchable []unwatchable
}

type unwatchable struct {
	Resource
	verbs []string
}

var errNothing = errors.New("discover API resources: no API group reports anything that can be watched")

// FetchCatalog runs discovery. It tolerates groups that do not answer, and fails only if the server reports
// nothing.
func FetchCatalog(ctx context.Context, d discovery.DiscoveryInterfaceWithContext) (*Catalog, error) {
	groups, lists, err := d.ServerGroupsAndResourcesWithContext(ctx)
	c := &Catalog{failed: map[string]error{}}
	if err != nil {
		var partial *discovery.ErrGroupDiscoveryFailed
		if !errors.As(err, &partial) {
			return nil, fmt.Errorf("discover API resources: %w", err)
		}
		for gv, cause := range partial.Groups {
			c.failed[gv.Group] = cause
		}
	}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, l := range lists {
		byVersion[l.GroupVersion] = l
	}
	for _, g := range groups {
		c.addGroup(g, byVersion)
	}
	if len(c.all) == 0 { // client-go returns no error if no group answers
		return nil, errNothing
	}
	return c, nil
}

// addGroup adds the group's preferred version first; resources missing from it are added from the next version
// in the server's order.
func (c *Catalog) addGroup(g *metav1.APIGroup, lists map[string]*metav1.APIResourceList) {
	versions := []string{g.PreferredVersion.GroupVersion}
	for _, v := range g.Versions {
		if !slices.Contains(versions, v.GroupVersion) {
			versions = append(versions, v.GroupVersion)
		}
	}
	seen := map[string]bool{}
	for _, gv := range versions {
		l := lists[gv]
		if l == nil {
			continue
		}
		for i := range l.APIResources {
			r, ok := watchable(gv, &l.APIResources[i])
			if !ok {
				if a := &l.APIResources[i]; r.Resource != "" {
					c.unwatchable = append(c.unwatchable, unwatchable{r, a.Verbs})
				}
				continue
			}
			c.all = append(c.all, r)
			if !seen[r.Resource] {
				seen[r.Resource] = true
				c.preferred = append(c.preferred, r)
			}
		}
	}
}

// watchable converts a resource; ok is false if it cannot be listed and watched. A subresource has no name then.
func watchable(groupVersion string, a *metav1.APIResource) (Resource, bool) {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil || strings.Contains(a.Name, "/") {
		return Resource{}, false
	}
	if a.Group != "" {
		gv.Group = a.Group
	}
	if a.Version != "" {
		gv.Version = a.Version
	}
	r := Resource{
		Group: gv.Group, Version: gv.Version,
		Resource: a.Name, Singular: a.SingularName, Kind: a.Kind,
		Namespaced: a.Namespaced, Categories: a.Categories, ShortNames: a.ShortNames,
	}
	if r.Singular == "" {
		r.Singular = strings.ToLower(a.Kind)
	}
	if len(a.ShortNames) > 0 {
		r.Short = a.ShortNames[0]
	}
	return r, slices.Contains(a.Verbs, "list") && slices.Contains(a.Verbs, "watch")
}

// builtIn reports whether r is in an API group of Kubernetes itself, not in one of a custom resource or
// extension.
func builtIn(r Resource) bool {
	return !strings.Contains(r.Group, ".") || strings.HasSuffix(r.Group, ".k8s.io")
}

// Everything returns each watchable kind once, in its preferred version. Two groups serve events; only the core
// one is returned.
func (c *Catalog) Everything() []Resource {
	out := make([]Resource, 0, len(c.preferred))
	core := slices.ContainsFunc(c.preferred, func(r Resource) bool {
		return r.Group == "" && r.Resource == "events"
	})
	for _, r := range c.preferred {
		if core && r.Group == "events.k8s.io" && r.Resource == "events" {
			continue
		}
		out = append(out, r)
	}
	return out
}

// CheckRule returns an UnknownTypeError if a rule's resource, in the syntax of package rules, matches no kind
// of the server. The error is Pending if a custom resource could still fill it (its group is a custom one, or
// it is a glob), or while an API group does not answer.
func (c *Catalog) CheckRule(text string) error {
	lower := strings.ToLower(text)
	for _, r := range c.preferred {
		if rules.MatchAny([]string{lower}, r.Group, r.Resource, otherNames(r)...) {
			return nil
		}
	}
	err := c.unknown(text)
	_, group, _ := strings.Cut(lower, ".")
	err.Pending = strings.Contains(group, ".") || IsKindGlob(text) || len(c.failed) > 0
	return err
}

// otherNames returns a resource's names besides its plural.
func otherNames(r Resource) []string {
	return append([]string{r.Singular, strings.ToLower(r.Kind)}, r.ShortNames...)
}

// Failed returns the groups that did not answer, sorted. Their types are unknown.
func (c *Catalog) Failed() []string { return slices.Sorted(maps.Keys(c.failed)) }

// Find returns a group's resource in the wanted version, or in the preferred one if that version is no longer
// served.
func (c *Catalog) Find(group, resource, version string) (Resource, bool) {
	for _, r := range c.all {
		if r.Group == group && r.Resource == resource && r.Version == version {
			return r, true
		}
	}
	for _, r := range c.preferred {
		if r.Group == group && r.Resource == resource {
			return r, true
		}
	}
	return Resource{}, false
}

// UnknownTypeError reports that the server has no such resource type that can be watched.
type UnknownTypeError struct {
	Type string
	// Near is a similar type that the server has, or empty.
	Near string
	// Failed lists API groups that did not answer and may have the type.
	Failed []string
	// Pending reports that a custom resource may still define this type; see CheckRule.
	Pending bool
	// Verbs is set if the server has the type, but it cannot be listed and watched: what it can.
	Verbs []string
}

func (e *UnknownTypeError) Error() string {
	if len(e.Verbs) > 0 {
		return fmt.Sprintf("%q cannot be watched: the server offers only %s", e.Type, strings.Join(e.Verbs, ", "))
	}
	s := fmt.Sprintf("the server has no resource type %q", e.Type)
	if e.Pending {
		s += " (yet)"
	}
	switch {
	case e.Near != "":
		s += fmt.Sprintf("; did you mean %q?", e.Near)
	default:
		s += "; `kubectl api-resources` lists the types"
	}
	if len(e.Failed) > 0 {
		s += fmt.Sprintf(" (no answer from %s)", strings.Join(e.Failed, ", "))
	}
	return s
}

// AmbiguousTypeError reports that a name matches several resource types.
type AmbiguousTypeError struct {
	Type       string
	Candidates []string
}

func (e *AmbiguousTypeError) Error() string {
	return fmt.Sprintf("resource type %q is ambiguous: use one of %s", e.Type, strings.Join(e.Candidates, ", "))
}

// Resolve finds the types that kubectl would find for a name: plural, singular, kind, short name or category,
// optionally with ".group" or ".version.group". A trailing dot selects the core group. A category gives several
// types. Names are case-insensitive, as in kubectl.
func (c *Catalog) Resolve(name string) ([]Resource, error) {
	arg := strings.ToLower(name)
	if typ, core := strings.CutSuffix(arg, "."); core {
		if found := filter(c.preferred, func(r Resource) bool { return r.Group == "" && named(r, typ) }); len(found) > 0 {
			return found, nil
		}
		return nil, c.unknown(name)
	}
	if full, gr := schema.ParseResourceArg(arg); full != nil || gr.Group != "" {
		for _, r := range c.all {
			if full != nil && r.Group == full.Group && r.Version == full.Version && named(r, full.Resource) {
				return []Resource{r}, nil
			}
		}
		for _, r := range c.preferred {
			if named(r, gr.Resource) && (r.Group == gr.Group || (gr.Group != "" && strings.HasPrefix(r.Group, gr.Group+"."))) {
				return []Resource{r}, nil
			}
		}
		return nil, c.unknown(name)
	}
	for _, match := range []func(Resource) bool{
		func(r Resource) bool { return named(r, arg) },
		func(r Resource) bool { return slices.Contains(r.ShortNames, arg) },
	} {
		if found := filter(c.preferred, match); len(found) > 0 {
			return one(name, found)
		}
	}
	if found := filter(c.Everything(), func(r Resource) bool { return slices.Contains(r.Categories, arg) }); len(found) > 0 {
		return found, nil
	}
	return nil, c.unknown(name)
}

// named reports whether arg is r's plural, singular or kind.
func named(r Resource, arg string) bool {
	return arg == r.Resource || arg == r.Singular || arg == strings.ToLower(r.Kind)
}

// one picks a group as a kubectl user expects: the core group, then built-in groups, then all others. Several
// matches in the same class are ambiguous.
func one(name string, found []Resource) ([]Resource, error) {
	for _, better := range []func(Resource) bool{
		func(r Resource) bool { return r.Group == "" },
		builtIn,
	} {
		if best := filter(found, better); len(best) > 0 {
			found = best
			break
		}
	}
	if len(found) == 1 {
		return found, nil
	}
	e := &AmbiguousTypeError{Type: name}
	for _, r := range found {
		e.Candidates = append(e.Candidates, r.GroupResource())
	}
	return nil, e
}

func filter(rs []Resource, keep func(Resource) bool) []Resource {
	var out []Resource
	for _, r := range rs {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

func (c *Catalog) unknown(name string) *UnknownTypeError {
	e := &UnknownTypeError{Type: name, Failed: c.Failed()}
	typ, group, _ := strings.Cut(strings.ToLower(name), ".")
	for _, u := range c.unwatchable {
		if (named(u.Resource, typ) || slices.Contains(u.ShortNames, typ)) && (group == "" || group == u.Group) {
			e.Verbs = u.verbs
			return e
		}
	}
	var known []string
	for _, r := range c.preferred {
		if strings.Contains(name, ".") {
			known = append(known, r.GroupResource())
			continue
		}
		for _, n := range append([]string{r.Resource, r.Singular}, r.ShortNames...) {
			if len(n) > 2 {
				known = append(known, n)
			}
		}
	}
	known = slices.DeleteFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	e.Near = spell.Nearest(name, known)
	return e
}
