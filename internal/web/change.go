package web

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/render"
)

// The views of a change.
const (
	viewFields  = "fields"
	viewUnified = "unified"
	viewSplit   = "split"
	viewBefore  = "before"
	viewAfter   = "after"
	viewEvent   = "event"
)

// detail is a change with one of its views.
type detail struct {
	ID                                      string
	Op                                      event.Op
	Kind, Group, Namespace, Name            string
	OfCluster                               string // the cluster's name, if there are several
	UID, Version, Manager, Owner            string
	Severity                                event.Severity
	From, To, Seen                          time.Time
	Quiet, Net, Blind                       bool
	Subject, Link, Around, Timeline, Object string

	View string
	Tabs []tab
	// Fields, Lines, Pairs or Text are the view.
	Fields []field
	Lines  []diffLine
	Pairs  []pair
	Text   string
	// Note says why there is nothing to see, or what is missing.
	Note string
	// More is the URL of the whole view if it was cut; Cut is how many lines are left out.
	More string
	Cut  int

	c change.Change
}

type tab struct {
	Name, Label, URL string
	Current          bool
}

// field is a changed field.
type field struct {
	Path, Op, Manager, From, To string
	Quiet                       bool
	Lines                       []diffLine // of a value with several lines
}

// diffLine is a line of a unified diff. Class is add, remove, note or empty.
type diffLine struct{ Class, Sign, Text string }

// pair is a line of a diff, side by side.
type pair struct{ Left, Right diffLine }

// cutLines is how many lines of a view are sent unless the reader asks for the rest; maxLines is the bound then.
const (
	cutLines = 120
	maxLines = 50_000
)

// detail describes a change, in its default view.
func (p *Page) detail(ctx context.Context, e *journal.Entry, c change.Change, known error) detail {
	d := detail{
		ID: e.ID, Op: c.Op, Kind: c.Kind.Kind, Group: c.Kind.Group, Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		Version: c.ResourceVersion, Manager: c.Manager, Severity: c.Severity(), Seen: c.At, Quiet: c.Quiet, Net: c.Net, Blind: c.Blind,
		Subject: c.Subject(), Link: "/changes/" + e.ID, c: c,
	}
	d.OfCluster = p.past.cluster(ctx, c.Kind)
	d.From, d.To = happened(&c.Meta)
	d.Around = around(d.From, d.To)
	if c.Owner != nil {
		d.Owner = c.Owner.Kind + "/" + c.Owner.Name
	}
	f := &filter{}
	if c.Op.HasObject() {
		d.Timeline = f.with("/", "type", c.Kind.GroupResource(), "name", c.Name, "namespace", c.Namespace, "cluster", d.OfCluster)
		d.Object = object{cluster: d.OfCluster, resource: c.Kind.GroupResource(), namespace: c.Namespace, name: c.Name, version: e.ID}.url()
	}
	switch {
	case known != nil:
		d.Note = "The objects of this change cannot be read: " + known.Error()
	case c.Op == event.Gap, c.Op == event.Absent:
		line, _ := p.ofChange(&filter{flat: true}, c)
		d.Note = line.Name
	case c.Blind:
		d.Note = "The state before this change was purged from the journal."
	}
	d.tabs()
	return d
}

// tabs lists the views that the change has.
func (d *detail) tabs() {
	add := func(name, label string) {
		d.Tabs = append(d.Tabs, tab{Name: name, Label: label, URL: d.Link + "?view=" + name})
	}
	if d.c.Before != nil && d.c.After != nil {
		add(viewFields, "Fields")
		add(viewUnified, "Unified")
		add(viewSplit, "Side by side")
	}
	if d.c.Before != nil {
		add(viewBefore, "Before")
	}
	if d.c.After != nil {
		add(viewAfter, "After")
	}
	add(viewEvent, "Event")
}

// show chooses a view; empty is the default one.
func (d *detail) show(view string, cluster string, all bool) error {
	if view == "" {
		view = d.Tabs[0].Name
	}
	i := slices.IndexFunc(d.Tabs, func(t tab) bool { return t.Name == view })
	if i < 0 {
		return mistake("view: this change has no view %q", view)
	}
	d.View, d.Tabs[i].Current = view, true
	bound := cutLines
	if all {
		bound = maxLines
	}
	switch view {
	case viewFields:
		d.fields(bound)
	case viewUnified:
		d.Lines = d.cut(unified(d.c.Before, d.c.After), bound)
	case viewSplit:
		d.Pairs = pairs(d.cut(unified(d.c.Before, d.c.After), bound))
	case viewBefore:
		d.Lines = d.cut(plain(d.c.Before), bound)
	case viewAfter:
		d.Lines = d.cut(plain(d.c.After), bound)
	case viewEvent:
		text, err := eventText(cluster, &d.c)
		if err != nil {
			return err
		}
		d.Lines = d.cut(textLines(text), bound)
	}
	if d.Cut > 0 && !all {
		d.More = d.Link + "?view=" + view + "&all=1"
	}
	return nil
}

// cut bounds the lines of a view.
func (d *detail) cut(lines []diffLine, bound int) []diffLine {
	if len(lines) > bound {
		d.Cut += len(lines) - bound
		lines = lines[:bound]
	}
	return lines
}

// fields lists the changed fields, those that are not quiet first.
func (d *detail) fields(bound int) {
	changed := slices.Clone(d.c.Fields)
	slices.SortStableFunc(changed, func(a, b change.FieldChange) int {
		switch {
		case a.Quiet == b.Quiet:
			return 0
		case b.Quiet:
			return -1
		}
		return 1
	})
	left := bound
	for i := range changed {
		c := &changed[i]
		f := field{Path: c.Path.String(), Op: string(c.Op), Manager: managers.Display(c.Manager, c.Subresource), Quiet: c.Quiet}
		switch lines := diff.Text([]diff.Change{c.Change}, diff.TextOptions{MaxLines: -1}); {
		case len(lines) > 1:
			for _, l := range lines[1:] {
				f.Lines = append(f.Lines, lineOf(l))
			}
		case c.Op == diff.Reorder:
			f.From, f.To = "order "+diff.Order(c.From), diff.Order(c.To)
		default:
			f.From, f.To = value(c.Op != diff.Add, c.From), value(c.Op != diff.Remove, c.To)
		}
		if left -= 1 + len(f.Lines); left < 0 && i > 0 {
			d.Cut += 1 + len(f.Lines)
			continue
		}
		f.Lines = d.cut(f.Lines, bound)
		d.Fields = append(d.Fields, f)
	}
}

// value formats a value on one line.
func value(exists bool, v any) string {
	switch {
	case !exists:
		return ""
	case v == nil:
		return "null"
	}
	switch v.(type) {
	case map[string]any, []any:
		return strings.Join(diff.YAML(v), " ")
	}
	return diff.Scalar(v)
}

// unified compares two objects as YAML.
func unified(before, after map[string]any) []diffLine { return compared(before, after, 3) }

// compared compares two objects as YAML, with some unchanged lines around each changed one.
func compared(before, after map[string]any, context int) []diffLine {
	lines := diff.Text([]diff.Change{{Op: diff.Replace, From: before, To: after}}, diff.TextOptions{Context: context, MaxLines: -1})
	if len(lines) < 2 { // too different to compare by line
		var all []diffLine
		for _, l := range diff.YAML(before) {
			all = append(all, diffLine{"remove", "-", l})
		}
		for _, l := range diff.YAML(after) {
			all = append(all, diffLine{"add", "+", l})
		}
		return all
	}
	var all []diffLine
	for _, l := range lines[1:] {
		all = append(all, lineOf(l))
	}
	return all
}

// lineOf makes a line of a diff. Its text begins with four columns for the mark.
func lineOf(l diff.Line) diffLine {
	text := l.Text
	if len(text) >= 4 {
		text = text[4:]
	} else {
		text = ""
	}
	switch l.Kind {
	case diff.AddLine:
		return diffLine{"add", "+", text}
	case diff.RemoveLine:
		return diffLine{"remove", "-", text}
	case diff.NoteLine:
		return diffLine{"note", "", strings.TrimSpace(l.Text)}
	}
	return diffLine{"", "", text}
}

// pairs puts the lines of a diff side by side.
func pairs(lines []diffLine) (all []pair) {
	for i := 0; i < len(lines); {
		removed := i
		for removed < len(lines) && lines[removed].Class == "remove" {
			removed++
		}
		added := removed
		for added < len(lines) && lines[added].Class == "add" {
			added++
		}
		if added == i {
			all = append(all, pair{lines[i], lines[i]})
			i++
			continue
		}
		for n := range max(removed-i, added-removed) {
			var p pair
			if i+n < removed {
				p.Left = lines[i+n]
			} else {
				p.Left.Class = "empty"
			}
			if removed+n < added {
				p.Right = lines[removed+n]
			} else {
				p.Right.Class = "empty"
			}
			all = append(all, p)
		}
		i = added
	}
	return all
}

func plain(object map[string]any) []diffLine {
	var all []diffLine
	for _, l := range diff.YAML(object) {
		all = append(all, diffLine{Text: l})
	}
	return all
}

func textLines(text string) []diffLine {
	var all []diffLine
	for l := range strings.Lines(text) {
		all = append(all, diffLine{Text: strings.TrimSuffix(l, "\n")})
	}
	return all
}

// eventText is the event of a change as sinks get it, as indented JSON.
func eventText(cluster string, c *change.Change) (string, error) {
	var b bytes.Buffer
	err := render.WriteJSON(&b, change.Event(cluster, c))
	return b.String(), err
}

type changePage struct {
	head
	detail
	// Previous and Next are the object's changes before and after this one.
	Previous, Next string
}

// change serves a change. An id may be shortened.
func (p *Page) change(w http.ResponseWriter, r *http.Request) error {
	e, c, known, err := p.byID(r)
	if err != nil {
		return err
	}
	in := r.URL.Query()
	d := p.detail(r.Context(), &e, c, known)
	if err := d.show(in.Get("view"), p.past.source.Cluster(), in.Has("all")); err != nil {
		return err
	}
	if fragment(r) {
		return p.render(w, http.StatusOK, "detail", d)
	}
	page := changePage{head: p.head(r, d.Subject), detail: d}
	if page.Previous, page.Next, err = p.neighbours(r, &e); err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "change.html", page)
}

// event serves a change's event as JSON.
func (p *Page) event(w http.ResponseWriter, r *http.Request) error {
	_, c, known, err := p.byID(r)
	if err == nil {
		err = known
	}
	if err != nil {
		return err
	}
	text, err := eventText(p.past.source.Cluster(), &c)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/cloudevents+json")
	_, _ = w.Write([]byte(text)) // the browser may have gone
	return nil
}

// byID reads the change of a URL. known is why its objects cannot be read.
func (p *Page) byID(r *http.Request) (e journal.Entry, c change.Change, known, err error) {
	if e, err = p.past.source.ByID(r.Context(), r.PathValue("id")); err != nil {
		return e, c, nil, err
	}
	err = p.past.builder.Each(r.Context(), []int64{e.Seq}, func(_ *journal.Entry, got change.Change, gotErr error) error {
		c, known = got, gotErr
		return nil
	})
	if err == nil && c.Op == "" {
		err = journal.ErrNotFound
	}
	return e, c, known, err
}

// neighbours returns the URLs of the object's previous and next listed change.
func (p *Page) neighbours(r *http.Request, e *journal.Entry) (previous, next string, err error) {
	if !e.Op.HasObject() {
		return "", "", nil
	}
	q := journal.Query{Clusters: p.past.own(e.Kind), Resources: []string{e.Kind.GroupResource()}, Namespaces: []string{e.Namespace}, UID: e.UID, Snapshots: true, Limit: 1}
	if e.UID == "" {
		q.Names = []string{e.Name}
	}
	one := func(q journal.Query) (string, error) {
		for n, err := range p.past.rows(r.Context(), q) {
			if err != nil {
				return "", err
			}
			return "/changes/" + n.ID, nil
		}
		return "", nil
	}
	q.Before = e.Seq
	if previous, err = one(q); err != nil {
		return "", "", err
	}
	q.Before, q.After, q.OldestFirst = 0, e.Seq, true
	next, err = one(q)
	return previous, next, err
}
