// Package kinds lists the kinds that an API server serves, and keeps the list current as CRDs and APIServices
// appear and vanish.
//
// It watches CRDs and APIServices, and reads discovery after each change of one, and periodically. The caller
// needs the rights to list and watch both; discovery is usually open to everybody.
//
//	Ordering        In one report, kinds that are gone come before those that are served.
//	What may be     A kind that vanishes and returns between two reads counts as served all the time. Its
//	skipped         informers report the changes of its objects.
//	Gone            A kind is gone when discovery no longer has it and nothing contradicts that: its API group
//	                could be read, no established CRD serves it, and no APIService exists for a version that is
//	                missing in discovery, as while an API server starts or an aggregated API is away.
//	Versions        A kind that is served in several versions is reported in the server's preferred one, and
//	                keeps that version while it is served. After that, the kind is gone in the old version and
//	                served in another.
//	Slow consumers  Cost nothing: discovery is read when they request the next change.
package kinds

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

// Kind is a kind of objects that can be listed and watched.
type Kind struct {
	Resource schema.GroupVersionResource
	// Name is the kind's name, such as Deployment.
	Name       string
	Namespaced bool
}

// String returns the resource with its group, such as deployments.apps.
func (k Kind) String() string { return k.Resource.GroupResource().String() }

// Change reports that a kind is served, or no longer served.
type Change struct {
	Kind
	Gone bool
	// Initial is true for the kinds that were served when the loop began.
	Initial bool
}

// Options tune Changes. The zero value is usable.
type Options struct {
	// Every is the interval between reads of discovery without a known change, since an aggregated API can
	// change its kinds unnoticed; 0 means a minute.
	Every time.Duration
	// Log receives the reasons for which discovery cannot be read, each once; nil means slog.Default.
	Log *slog.Logger
}

// lookLimit bounds a read: a server that accepts a request and does not answer must not hang us.
const lookLimit = 20 * time.Second

// errNothing is returned while a server cannot answer yet: client-go treats 403 and 404 as an empty response.
var errNothing = errors.New("none of its API groups lists a watchable kind")

// List returns the kinds that are currently served, in the server's order; it works without Cluster.Run. Events
// are served by two groups; those of the core group are listed for both. Besides kinds it may return an error
// about API groups that could not be read: *discovery.ErrGroupDiscoveryFailed.
func List(ctx context.Context, c *informer.Cluster) ([]Kind, error) {
	d, err := client(c)
	if err != nil {
		return nil, err
	}
	found, err := look(ctx, d)
	if err != nil {
		return nil, err
	}
	return found.kinds(nil), found.partial()
}

// Changes yields each served kind, then each kind that appears or is gone, until ctx ends or the loop is left.
// The cluster must run, or be about to. While the API server does not answer, the loop waits. The last pair has
// no change and the reason for which the loop ended: informer.ErrClosed, the error of ctx, or an
// *informer.SyncError if the rights to watch CRDs and APIServices are missing.
func Changes(ctx context.Context, c *informer.Cluster, o Options) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		w, err := newWatch(ctx, c, o)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer w.close()
		if err := w.run(func(c Change) bool { return yield(c, nil) }); err != nil {
			yield(Change{}, err)
		}
	}
}

func client(c *informer.Cluster) (discovery.DiscoveryInterfaceWithContext, error) {
	http, server := c.HTTP()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: server.String()}, http)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	return d, nil
}

// catalog is the content of discovery.
type catalog struct {
	order  []schema.GroupVersion // in the server's order of preference
	has    map[schema.GroupVersion][]Kind
	failed map[schema.GroupVersion]error // versions that could not be read
}

func look(ctx context.Context, d discovery.DiscoveryInterfaceWithContext) (*catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	groups, lists, err := d.ServerGroupsAndResourcesWithContext(ctx)
	c := &catalog{has: map[schema.GroupVersion][]Kind{}, failed: map[schema.GroupVersion]error{}}
	if err != nil {
		var partial *discovery.ErrGroupDiscoveryFailed
		if !errors.As(err, &partial) {
			return nil, fmt.Errorf("read discovery: %w", err)
		}
		c.failed = partial.Groups
	}
	for _, g := range groups {
		c.addVersions(g)
	}
	watchable := 0
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		c.has[gv] = []Kind{}
		for i := range l.APIResources {
			if k, ok := kind(gv, &l.APIResources[i]); ok {
				c.has[gv] = append(c.has[gv], k)
				watchable++
			}
		}
	}
	if watchable == 0 {
		return nil, fmt.Errorf("read discovery: %w", errNothing)
	}
	return c, nil
}

// addVersions records the order of a group's versions: the preferred one first.
func (c *catalog) addVersions(g *metav1.APIGroup) {
	versions := append([]metav1.GroupVersionForDiscovery{g.PreferredVersion}, g.Versions...)
	for _, v := range versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
		if v.Version != "" && !slices.Contains(c.order, gv) {
			c.order = append(c.order, gv)
		}
	}
}

// kind converts a resource that can be listed and watched; ok is false for others, such as subresources.
func kind(gv schema.GroupVersion, r *metav1.APIResource) (Kind, bool) {
	if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
		return Kind{}, false
	}
	return Kind{Resource: gv.WithResource(r.Name), Name: r.Kind, Namespaced: r.Namespaced}, true
}

// coreEvents are also served by another group.
var coreEvents = schema.GroupResource{Resource: "events"}

// kinds returns each kind once: in its known version, if that is still served, otherwise in the preferred one.
func (c *catalog) kinds(known map[schema.GroupResource]Kind) []Kind {
	var all []Kind
	place := map[schema.GroupResource]int{}
	for _, gv := range c.order {
		for _, k := range c.has[gv] {
			gr := k.Resource.GroupResource()
			switch i, seen := place[gr]; {
			case !seen:
				place[gr] = len(all)
				all = append(all, k)
			case known[gr].Resource == k.Resource:
				all[i] = k
			}
		}
	}
	if _, ok := place[coreEvents]; ok {
		all = slices.DeleteFunc(all, func(k Kind) bool {
			return k.Resource.GroupResource() == schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
		})
	}
	return all
}

// failedGroup reports whether some version of a group could not be read.
func (c *catalog) failedGroup(group string) bool {
	for gv := range c.failed {
		if gv.Group == group {
			return true
		}
	}
	return false
}

func (c *catalog) partial() error {
	if len(c.failed) == 0 {
		return nil
	}
	return &discovery.ErrGroupDiscoveryFailed{Groups: c.failed}
}
