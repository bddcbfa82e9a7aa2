package informertest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Describe sets further properties of a kind in discovery. By default a kind is namespaced and has no short
// names and categories.
func (s *Server) Describe(gvr schema.GroupVersionResource, clusterScoped bool, shortNames, categories []string) {
	defer s.lock()()
	scope := apidiscovery.ScopeNamespace
	if clusterScoped {
		scope = apidiscovery.ScopeCluster
	}
	s.described[gvr.GroupResource()] = apidiscovery.APIResourceDiscovery{Scope: scope, ShortNames: shortNames, Categories: categories}
}

// SetStale makes discovery report that the contents of a group are unknown, as for an aggregated API that does
// not answer.
func (s *Server) SetStale(group string, stale bool) {
	defer s.lock()()
	s.stale[group] = stale
}

// discover answers /api and /apis in the aggregated form, which API servers have had since 1.30.
func (c *call) discover() {
	c.s.mu.Lock()
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    c.s.groups(c.r.URL.Path == "/api"),
	}
	c.s.mu.Unlock()
	c.w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_, _ = c.w.Write(encodeJSON(list))
}

// discoverVersion answers /api/v1 and /apis/GROUP/VERSION in the form that all API servers support.
func (c *call) discoverVersion() {
	gv := groupVersionAt(c.r.URL.Path)
	c.s.mu.Lock()
	stale := c.s.stale[gv.Group]
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for gvr, res := range c.s.resources {
		if res.served && gvr.GroupVersion() == gv {
			d := c.s.describe(gvr)
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: gvr.Resource, SingularName: d.SingularResource, Namespaced: d.Scope == apidiscovery.ScopeNamespace,
				Kind: res.kind.name, Verbs: d.Verbs, ShortNames: d.ShortNames, Categories: d.Categories,
			})
		}
	}
	c.s.mu.Unlock()
	switch {
	case stale:
		Refuse(c.w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the aggregated API does not answer")
		return
	case len(list.APIResources) == 0:
		http.NotFound(c.w, c.r)
		return
	}
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(encodeJSON(list))
}

// groupVersionAt reads /api/v1 and /apis/GROUP/VERSION; it returns the zero value for other paths.
func groupVersionAt(path string) schema.GroupVersion {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case len(parts) == 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}
	case len(parts) == 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}
	}
	return schema.GroupVersion{}
}

// groups returns the groups by name, and their versions by maturity, the order of a server without configured
// priorities; s.mu is held.
func (s *Server) groups(core bool) []apidiscovery.APIGroupDiscovery {
	byGroup := map[string]map[string][]apidiscovery.APIResourceDiscovery{}
	for _, gvr := range slices.SortedFunc(maps.Keys(s.resources), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if !s.resources[gvr].served || (gvr.Group == "") != core {
			continue
		}
		if byGroup[gvr.Group] == nil {
			byGroup[gvr.Group] = map[string][]apidiscovery.APIResourceDiscovery{}
		}
		byGroup[gvr.Group][gvr.Version] = append(byGroup[gvr.Group][gvr.Version], s.describe(gvr))
	}
	var groups []apidiscovery.APIGroupDiscovery
	for _, name := range slices.Sorted(maps.Keys(byGroup)) {
		g := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		freshness := apidiscovery.DiscoveryFreshnessCurrent
		if s.stale[name] {
			freshness = apidiscovery.DiscoveryFreshnessStale
		}
		for _, v := range slices.SortedFunc(maps.Keys(byGroup[name]), func(a, b string) int {
			return version.CompareKubeAwareVersionStrings(b, a)
		}) {
			g.Versions = append(g.Versions, apidiscovery.APIVersionDiscovery{Version: v, Resources: byGroup[name][v], Freshness: freshness})
		}
		groups = append(groups, g)
	}
	return groups
}

// describe returns the discovery entry of a kind; s.mu is held.
func (s *Server) describe(gvr schema.GroupVersionResource) apidiscovery.APIResourceDiscovery {
	kind := s.resources[gvr].kind.name
	r := s.described[gvr.GroupResource()]
	if r.Scope == "" {
		r.Scope = apidiscovery.ScopeNamespace
	}
	r.Resource, r.SingularResource = gvr.Resource, strings.ToLower(kind)
	r.ResponseKind = &metav1.GroupVersionKind{Group: gvr.Group, Version: gvr.Version, Kind: kind}
	r.Verbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	if s.resources[gvr].kind.status {
		r.Subresources = []apidiscovery.APISubresourceDiscovery{{
			Subresource: "status", ResponseKind: r.ResponseKind, Verbs: metav1.Verbs{"get", "patch", "update"},
		}}
	}
	return r
}
