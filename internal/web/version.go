package web

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/relations"
	"github.com/tattler-dev/tattler/internal/selection"
)

// versionView is a version of an object, in one of its views.
type versionView struct {
	ID, Op, Manager, UID, Version, Link string
	From, To                            time.Time
	Quiet                               bool
	View                                string
	Tabs                                []tab
	// Lines, Blame or Related are the view.
	Lines   []diffLine
	Blame   []blameLine
	Related []relatedObject
	// Base is the version with which this one is compared, unless that is the one before; Before is the URL of that
	// comparison.
	Base   *version
	Before string
	Note   string
	// Cut is how many lines are left out, More the URL of all.
	Cut  int
	More string
}

// blameLine is a line of the YAML with its last change; the first of several lines of one change names it.
type blameLine struct {
	Text, Manager string
	From, To      time.Time // when it changed, or the interval in which it did
	Before        bool      // at that time or earlier
	First         bool
	URL           string
}

// relatedObject is a related object. How says how.
type relatedObject struct{ How, Type, Namespace, Name, URL string }

// objectLines is how many lines of an object are sent unless the reader asks for the rest.
const objectLines = 2000

// viewVersion makes the chosen view of a version.
func (p *Page) viewVersion(ctx context.Context, o object, e *journal.Entry, all bool) (*versionView, error) {
	ctx, cancel := context.WithDeadline(ctx, p.deadline(maxView))
	defer cancel()
	c, err := p.past.build(ctx, e)
	v := &versionView{
		ID: e.ID, Op: string(e.Op), Manager: c.Manager, UID: e.UID, Version: e.ResourceVersion, Quiet: e.Quiet, Link: "/changes/" + e.ID,
		View: cmp.Or(o.view, viewDiff),
	}
	v.From, v.To = happened(&c.Meta)
	for _, t := range []tab{{Name: viewDiff, Label: "YAML"}, {Name: viewBlame, Label: "Blame"}, {Name: viewRelated, Label: "Related"}} {
		t.URL, t.Current = o.url("view", t.Name), t.Name == v.View
		v.Tabs = append(v.Tabs, t)
	}
	if err == nil {
		switch v.View {
		case viewBlame:
			err = p.viewBlame(ctx, v, e)
		case viewRelated:
			err = p.viewRelated(ctx, v, o, e, &c)
		default:
			err = p.viewDiff(ctx, v, o, &c)
		}
	}
	if err != nil {
		if err = v.failed(err); err != nil {
			return nil, err
		}
	}
	v.bound(o, all)
	return v, nil
}

// failed turns the reasons why one version cannot be shown into a note.
func (v *versionView) failed(err error) error {
	var user *UserError
	switch {
	case errors.As(err, &user), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, journal.ErrPurged):
		v.Note = "This version was purged from the journal."
	case errors.Is(err, journal.ErrNotFound):
		v.Note = "Retention has removed this version."
	case history.Damaged(err):
		v.Note = "This version is damaged and cannot be read: " + err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		v.Note = "This takes too long for a page: use tattler blame."
	default:
		return err
	}
	return nil
}

// bound cuts the lines.
func (v *versionView) bound(o object, all bool) {
	most := objectLines
	if all {
		most = maxLines
	}
	if n := len(v.Lines); n > most {
		v.Cut, v.Lines = n-most, v.Lines[:most]
	}
	if n := len(v.Blame); n > most {
		v.Cut, v.Blame = n-most, v.Blame[:most]
	}
	if v.Cut > 0 && !all {
		v.More = o.url() + "&all=1"
	}
}

// viewDiff shows the whole object, with the lines that differ from the version before, or from a chosen one.
func (p *Page) viewDiff(ctx context.Context, v *versionView, o object, c *change.Change) error {
	before, after := c.Before, c.After
	if o.with != "" {
		var e journal.Entry
		err := p.one(ctx, &o, "with", o.with, &e)
		if errors.Is(err, journal.ErrNotFound) {
			v.Note, v.Lines = "The journal does not have the version to compare with.", plain(after)
			return nil
		}
		if err != nil {
			return err
		}
		base, err := p.past.build(ctx, &e)
		if err != nil {
			return err
		}
		v.Base = &version{ID: e.ID, Op: string(e.Op), Manager: e.Manager, URL: o.url("version", e.ID, "with", "")}
		v.Base.From, v.Base.To = happened(&e.Meta)
		v.Before = o.url("with", "")
		before = base.After
		if before == nil && after == nil {
			v.Note = "The object does not exist in either version."
			return nil
		}
	}
	switch {
	case after == nil && before == nil:
		v.Note = "This version was purged from the journal."
	case after == nil:
		v.Note = "The object was " + string(c.Op) + ". This is its last state."
		v.Lines = marked(plain(before), "remove", "-")
	case before == nil && c.Blind:
		v.Note = "The state before this version was purged from the journal, so differences are unknown."
		v.Lines = plain(after)
	case before == nil:
		v.Lines = plain(after)
	case diff.Equal(before, after):
		v.Note = "The versions are equal."
		v.Lines = plain(after)
	default:
		v.Lines = compared(before, after, wholeObject)
	}
	return nil
}

// wholeObject is a context that covers every line of an object.
const wholeObject = 1 << 20

func marked(lines []diffLine, class, sign string) []diffLine {
	for i := range lines {
		lines[i].Class, lines[i].Sign = class, sign
	}
	return lines
}

// viewBlame shows the change that led to each line. For an object that was deleted, it shows the lines before that.
func (p *Page) viewBlame(ctx context.Context, v *versionView, e *journal.Entry) error {
	before, text, err := e.Contents(ctx)
	if err != nil && !errors.Is(err, journal.ErrPurged) {
		return err
	}
	if text == nil {
		v.Note = "The object was " + string(e.Op) + ". This is its last state."
		q := journal.Query{Clusters: p.past.own(e.Kind), Resources: []string{e.Kind.GroupResource()}, Namespaces: []string{e.Namespace}, Names: []string{e.Name}, UID: e.UID, Before: e.Seq, Quiet: true, Snapshots: true, Limit: 1}
		var last *journal.Entry
		for found, err := range p.past.rows(ctx, q) {
			if err != nil {
				return err
			}
			last = &found
		}
		if text = before; last == nil || text == nil {
			return journal.ErrPurged
		}
		e = last
	}
	s := &journal.State{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID, Presence: journal.Present, JSON: text, Last: e}
	lines, err := p.past.builder.Blame(ctx, s)
	if err != nil {
		return err
	}
	previous := ""
	for _, l := range lines {
		b := blameLine{Text: l.Text}
		if l.Blame != nil {
			b.From, b.To, b.Before, b.Manager = cmp.Or(l.Blame.Since, l.Blame.Time), l.Blame.Time, l.Blame.Before, l.Blame.Manager
			key := l.Blame.ID + " " + l.Blame.Manager
			b.First = key != previous
			previous = key
			if l.Blame.ID != "" {
				b.URL = "/changes/" + l.Blame.ID
			}
		}
		v.Blame = append(v.Blame, b)
	}
	return nil
}

// maxRelated bounds the changes that are read to find the objects that an object owns.
const maxRelated = 2000

// relationWords describe a related object.
var relationWords = map[relations.Relation]string{
	relations.OwnedBy: "owner", relations.Names: "named by it", relations.Binds: "bound to it", relations.Scales: "scaled by it",
	relations.Routes: "receives its requests", relations.RunsOn: "its node", relations.About: "the event is about it",
}

// viewRelated lists the objects that a version refers to, and those that the object owns.
func (p *Page) viewRelated(ctx context.Context, v *versionView, o object, e *journal.Entry, c *change.Change) error {
	content := c.After
	if content == nil {
		content = c.Before
	}
	kinds, err := p.past.source.Kinds(ctx)
	if err != nil {
		return err
	}
	added := map[relatedObject]bool{}
	add := func(how string, k journal.Kind, namespace, name string) {
		r := relatedObject{How: how, Type: k.GroupResource(), Namespace: namespace, Name: name}
		r.URL = object{resource: r.Type, namespace: namespace, name: name, cluster: o.cluster}.url()
		if !added[r] {
			added[r] = true
			v.Related = append(v.Related, r)
		}
	}
	scoped := func(group, kind string) bool {
		i := slices.IndexFunc(kinds, func(k journal.Kind) bool { return k.Group == group && k.Kind == kind && k.Cluster == e.Kind.Cluster })
		return i >= 0 && !kinds[i].Namespaced || i < 0 && relations.ClusterScoped(group, kind)
	}
	self := relations.Ref{Group: e.Kind.Group, Kind: e.Kind.Kind, Namespace: e.Namespace, Name: e.Name}
	for _, edge := range relations.Of(self, content, scoped).Edges {
		how := relationWords[edge.Relation]
		i := slices.IndexFunc(kinds, func(k journal.Kind) bool {
			return k.Group == edge.To.Group && k.Kind == edge.To.Kind && k.Cluster == e.Kind.Cluster
		})
		if i < 0 { // not recorded, so it has no page
			v.Related = append(v.Related, relatedObject{How: how, Type: strings.ToLower(edge.To.Kind), Namespace: edge.To.Namespace, Name: edge.To.Name})
			continue
		}
		add(how, kinds[i], edge.To.Namespace, edge.To.Name)
	}
	q := journal.Query{
		Resources: []string{o.resource}, Names: []string{o.name}, Namespaces: []string{o.namespace}, Owned: selection.Owns(), Snapshots: true, Limit: maxRelated,
	}
	if o.cluster != "" {
		q.Clusters = []string{o.cluster}
	}
	if o.namespace == "" {
		q.Namespaces = nil
	}
	read := 0
	for child, err := range p.past.rows(ctx, q) {
		if err != nil {
			return err
		}
		read++
		if owner := child.Owner; owner != nil && owner.Kind == e.Kind.Kind && owner.Name == e.Name && owner.UID == e.UID {
			add("owned by it", child.Kind, child.Namespace, child.Name)
		}
	}
	switch {
	case read == maxRelated:
		v.Note = "Objects that it owns are those of its newest " + thousands(maxRelated) + " changes."
	case len(v.Related) == 0:
		v.Note = "It refers to no object, and owns none that is recorded."
	}
	return nil
}
