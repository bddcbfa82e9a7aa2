package web

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// narrowing says to which namespaces the page is narrowed, because the viewer's rights cannot be checked in all of them.
type narrowing struct {
	// Namespaces are those that are shown, each with the URL of it alone.
	Namespaces []option
	// Unchecked says that the viewer may have rights in others.
	Unchecked bool
}

// narrower finds the namespaces of a viewer: *access.Source.
type narrower interface {
	Namespaces(ctx context.Context, q journal.Query) (access.Namespaces, error)
}

// within is the parameter with the namespaces to which a page was narrowed. Its links to older, newer and folded entries
// have it, so that they show the same namespaces. It grants nothing.
const within = "within"

// onlyCluster is its value where the viewer has no namespace: only cluster-scoped objects are left.
const onlyCluster = access.Nowhere

// narrow narrows a filter to namespaces that the viewer may see, if the viewer's rights cannot be checked in all of them.
// It returns nil if that is not necessary.
func (p *Page) narrow(ctx context.Context, f *filter) (*narrowing, error) {
	if f.values.Has(within) {
		return f.narrowed(true), nil
	}
	n, ok := p.past.source.(narrower)
	if !ok || !f.manyNamespaces() || f.flat && len(f.Types.Names) > 0 {
		return nil, nil
	}
	q := f.Query
	if !f.flat { // a story may have parts of any kind
		q = journal.Query{Clusters: q.Clusters, Since: q.Since, Until: q.Until, Namespaces: q.Namespaces, Without: q.Without}
	}
	if q.Until.IsZero() {
		q.Until = p.o.Now()
	}
	found, err := n.Namespaces(ctx, q)
	if err != nil || found.All {
		return nil, err
	}
	f.values.Set(within, strings.Join(f.selected(found.Names), ","))
	f.confine()
	return f.narrowed(found.Unchecked), nil
}

// manyNamespaces reports whether the filter does not name its namespaces.
func (f *filter) manyNamespaces() bool {
	all := f.Namespaces.Include
	return len(all) == 0 || slices.ContainsFunc(all, func(ns string) bool { return strings.ContainsAny(ns, `*?[\`) })
}

// confine applies the parameter within. Cluster-scoped objects stay, where the filter has them.
func (f *filter) confine() {
	text := f.values.Get(within)
	if text == "" || !f.manyNamespaces() {
		return
	}
	if f.Query.Namespaces = f.selected(strings.Split(text, ",")); f.Namespaces.Has("") {
		f.Query.Namespaces = append(f.Query.Namespaces, "")
	}
}

// selected returns the namespaces that the filter selects; onlyCluster if there are none, as an empty list selects all.
func (f *filter) selected(names []string) []string {
	if names = slices.DeleteFunc(slices.Clone(names), func(ns string) bool { return !f.Namespaces.Has(ns) }); len(names) == 0 {
		return []string{onlyCluster}
	}
	return names
}

// narrowed describes the parameter within.
func (f *filter) narrowed(unchecked bool) *narrowing {
	n := &narrowing{Unchecked: unchecked}
	for ns := range strings.SplitSeq(f.values.Get(within), ",") {
		if ns != onlyCluster {
			n.Namespaces = append(n.Namespaces, option{Name: ns, URL: f.with("/", "namespace", ns)})
		}
	}
	return n
}

// narrowings remembers the parameter within of pages, for the histogram that a live page asks for again and again. It
// grants nothing.
type narrowings struct {
	mu sync.Mutex
	of map[string]string // by viewer and filter
}

// maxNarrowings bounds the remembered pages.
const maxNarrowings = 1000

func narrowingKey(ctx context.Context, f *filter) string {
	return auth.From(ctx).Key() + " " + f.with("/") // without within
}

// keep remembers the narrowing of a page.
func (n *narrowings) keep(ctx context.Context, f *filter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := narrowingKey(ctx, f)
	if n.of == nil || len(n.of) >= maxNarrowings {
		n.of = map[string]string{}
	}
	n.of[key] = f.values.Get(within)
}

// use applies what a page has remembered.
func (n *narrowings) use(ctx context.Context, f *filter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if names, ok := n.of[narrowingKey(ctx, f)]; ok && names != "" && !f.values.Has(within) {
		f.values.Set(within, names)
		f.confine()
	}
}
