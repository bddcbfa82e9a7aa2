package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// The views of an object's version.
const (
	viewDiff    = "diff"
	viewBlame   = "blame"
	viewRelated = "related"
)

// windowSize is how many versions before and after the shown one are sent.
const windowSize = 100

// maxView bounds the time for a view that reads many changes.
const maxView = 5 * time.Second

var errNoObject = errors.New("no such object")

// object is what a URL asks for: an object and some of its versions. Objects that had the same name count as one.
type object struct {
	resource, namespace, name string
	version, with, view       string
	cluster                   string // the name; empty if there is only one, and until it is known
	own                       string // the name of the journal
	quiet                     bool
}

// url returns the object's URL, of which pairs of names and values replace some parameters.
func (o object) url(pairs ...string) string {
	v := url.Values{"type": {o.resource}, "name": {o.name}}
	set := func(name, value string) {
		if v.Del(name); value != "" {
			v.Set(name, value)
		}
	}
	set("namespace", o.namespace)
	set("cluster", o.cluster)
	set("version", o.version)
	set("view", o.view)
	set("with", o.with)
	if o.quiet {
		v.Set("quiet", "1")
	}
	for i := 0; i < len(pairs); i += 2 {
		set(pairs[i], pairs[i+1])
	}
	return "/object?" + v.Encode()
}

// is reports whether a change is one of the object. A query takes namespaces as patterns.
func (o object) is(e *journal.Entry) bool {
	return e.Op.HasObject() && e.Name == o.name && e.Namespace == o.namespace && e.Kind.GroupResource() == o.resource &&
		(o.cluster == "" || o.cluster == e.Kind.ClusterOr(o.own))
}

// version is a change of the object, as the list of versions has it.
type version struct {
	ID, Op, Manager string
	From, To        time.Time // when it happened, or the interval in which it did
	Quiet, Current  bool
	Recreated       bool // it begins another object with the same name
	// URL shows the version, With compares the shown one with it.
	URL, With string
}

type objectPage struct {
	head
	Type, Kind, Namespace, Object string
	// OfCluster is the name of the cluster, if there are several.
	OfCluster string
	// Versions are those around the shown one, the oldest first. At is the index of the shown one.
	Versions []version
	At, Last int
	// Older and Newer are URLs of versions beyond the list. Previous and Next are those beside the shown one.
	Older, Newer, Previous, Next string
	// QuietURL includes or leaves out quiet versions.
	QuietURL string
	Quiet    bool
	Timeline string
	View     *versionView
}

// object serves the page of an object.
func (p *Page) object(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	o := object{
		resource: in.Get("type"), namespace: in.Get("namespace"), name: in.Get("name"), version: in.Get("version"), with: in.Get("with"), view: in.Get("view"),
		quiet: in.Has("quiet"), cluster: in.Get("cluster"), own: p.past.source.Cluster(),
	}
	switch {
	case o.resource == "" || o.name == "":
		return mistake("an object has a type and a name: /object?type=deployments.apps&namespace=shop&name=web")
	case o.view != "" && !slices.Contains([]string{viewDiff, viewBlame, viewRelated}, o.view):
		return mistake("view: an object has no view %q: choose diff, blame or related", o.view)
	}
	e, err := p.shown(r.Context(), &o)
	if err != nil {
		return err
	}
	o.cluster = p.past.cluster(r.Context(), e.Kind)
	view, err := p.viewVersion(r.Context(), o, &e, in.Has("all"))
	if err != nil {
		return err
	}
	if fragment(r) {
		return p.render(w, http.StatusOK, "version", view)
	}
	f := &filter{}
	page := objectPage{
		head: p.head(r, o.resource+"/"+o.name), Type: o.resource, Kind: e.Kind.Kind, Namespace: o.namespace, OfCluster: o.cluster, Object: o.name, View: view, Quiet: o.quiet,
		Timeline: f.with("/", "type", o.resource, "name", o.name, "namespace", o.namespace, "cluster", o.cluster),
	}
	other := o
	other.quiet = !o.quiet
	page.QuietURL = other.url()
	if err := p.around(r.Context(), o, &e, &page); err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "object.html", page)
}

// versions returns the object's changes on one side of a change, the nearest first.
func (p *Page) versions(ctx context.Context, o object, q journal.Query) (all []journal.Entry, err error) {
	q.Resources, q.Names, q.Namespaces = []string{o.resource}, []string{o.name}, []string{o.namespace}
	if o.cluster != "" {
		q.Clusters = []string{o.cluster}
	}
	q.Snapshots, q.Quiet = true, o.quiet
	limit := q.Limit
	q.Limit = 0 // is may leave out some
	for e, err := range p.past.rows(ctx, q) {
		if err != nil {
			return nil, err
		}
		if o.is(&e) {
			all = append(all, e)
		}
		if len(all) == limit {
			break
		}
	}
	return all, nil
}

// shown returns the version that the URL asks for; the newest one by default.
func (p *Page) shown(ctx context.Context, o *object) (e journal.Entry, err error) {
	if o.version != "" {
		return e, p.one(ctx, o, "version", o.version, &e)
	}
	for _, quiet := range []bool{o.quiet, true} { // retention may have left only quiet versions
		asked := *o
		asked.quiet = quiet
		all, err := p.versions(ctx, asked, journal.Query{Limit: 1})
		if err != nil {
			return e, err
		}
		if len(all) == 1 {
			o.version, o.quiet = all[0].ID, quiet
			return all[0], nil
		}
	}
	return e, errNoObject
}

// one reads a change of the object by its id.
func (p *Page) one(ctx context.Context, o *object, parameter, id string, e *journal.Entry) (err error) {
	if *e, err = p.past.source.ByID(ctx, id); err != nil {
		return err
	}
	if !o.is(e) {
		return mistake("%s: change %s is not one of this object", parameter, id)
	}
	if parameter == "version" {
		o.version = e.ID
		o.quiet = o.quiet || e.Quiet
	}
	return nil
}

// happened returns when a change happened, or the interval in which it did. A snapshot, whose time is that of the creation,
// shows a version that was written before it was seen.
func happened(m *journal.Meta) (from, to time.Time) {
	if m.Op == event.Snapshot {
		return m.At, m.At
	}
	return m.Span()
}

// around fills in the versions around the shown one.
func (p *Page) around(ctx context.Context, o object, e *journal.Entry, page *objectPage) error {
	older, err := p.versions(ctx, o, journal.Query{Before: e.Seq, Limit: windowSize + 1})
	if err != nil {
		return err
	}
	newer, err := p.versions(ctx, o, journal.Query{After: e.Seq, OldestFirst: true, Limit: windowSize + 1})
	if err != nil {
		return err
	}
	if len(older) > windowSize {
		older = older[:windowSize]
		page.Older = o.url("version", older[windowSize-1].ID)
	}
	if len(newer) > windowSize {
		newer = newer[:windowSize]
		page.Newer = o.url("version", newer[windowSize-1].ID)
	}
	slices.Reverse(older)
	page.At = len(older)
	all := append(append(older, *e), newer...)
	page.Last = len(all) - 1
	for i := range all {
		v := version{
			ID: all[i].ID, Op: string(all[i].Op), Manager: all[i].Manager, Quiet: all[i].Quiet, Current: i == page.At,
			Recreated: i > 0 && all[i].UID != all[i-1].UID, URL: o.url("version", all[i].ID, "with", ""),
		}
		v.From, v.To = happened(&all[i].Meta)
		v.With = o.url("with", all[i].ID, "view", "") // that of the shown one is hidden until the slider shows another
		page.Versions = append(page.Versions, v)
	}
	if page.At > 0 {
		page.Previous = page.Versions[page.At-1].URL
	}
	if page.At < page.Last {
		page.Next = page.Versions[page.At+1].URL
	}
	return nil
}
