package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
)

// Changes is a page of changes.
type Changes struct {
	Changes []Change `json:"changes" doc:"in the requested order"`
	// Next is where the next page begins; a page may be short, and even empty, although others follow.
	Next int64 `json:"next,omitempty" doc:"before (or after, with order=oldest) of the next page; absent on the last"`
	// Failed counts changes for which where failed.
	Failed    int    `json:"failed,omitempty" doc:"changes of this page that where could not judge"`
	LastError string `json:"lastError,omitempty" doc:"why it could not judge the last of them"`
}

// Change is a change.
type Change struct {
	Seq   int64       `json:"seq" doc:"place in the journal"`
	Event event.Event `json:"event"`
	// Error says why its objects cannot be read; the event then has no differences.
	Error *Error `json:"error,omitempty" doc:"why its objects cannot be read; the event then lacks its differences"`
}

// The sizes of pages.
const (
	defaultPage = 50
	maxPage     = 500
	// pageBytes is about how many bytes of objects a page reads: the next page continues.
	pageBytes = 8 << 20
)

// asked reads the selection of a request and resolves its kinds. Its error names a kind or a cluster that the journal does not
// have.
func (a *api) asked(r *http.Request) (*selection.Selection, error) {
	o, err := selection.FromValues(r.URL.Query())
	if err != nil {
		return nil, err
	}
	s, err := o.Parse(a.o.Now())
	if err != nil {
		return nil, err
	}
	if err := s.Resolve(r.Context(), a.o.Changes); err != nil {
		return nil, err
	}
	if len(s.Types.Unknown) > 0 {
		err := selection.Explain(r.Context(), a.o.Changes, s.Types.Unknown[0])
		return nil, problem(http.StatusNotFound, "%v", err)
	}
	known, err := a.o.Source.Clusters(r.Context())
	if err != nil {
		return nil, err
	}
	if err := journal.CheckClusters(s.Query.Clusters, known); err != nil {
		return nil, problem(http.StatusNotFound, "%v", err)
	}
	return s, nil
}

// bounds reads before, after, order and limit.
func bounds(r *http.Request, q *journal.Query) (limit int, err error) {
	p := r.URL.Query()
	if q.Before, err = sequence(p.Get("before"), "before"); err != nil {
		return 0, err
	}
	if q.After, err = sequence(p.Get("after"), "after"); err != nil {
		return 0, err
	}
	// Nothing between two neighbours is an empty page: a list may end there.
	if q.Before != 0 && q.After >= q.Before {
		return 0, problem(http.StatusBadRequest, "after is not before before")
	}
	switch p.Get("order") {
	case "", "newest":
	case "oldest":
		q.OldestFirst = true
	default:
		return 0, problem(http.StatusBadRequest, "order: %q is neither newest nor oldest", p.Get("order"))
	}
	return limitOf(p, defaultPage, maxPage)
}

func (a *api) changes(r *http.Request) (any, error) {
	s, err := a.asked(r)
	if err != nil {
		return nil, err
	}
	q := s.Query
	limit, err := bounds(r, &q)
	if err != nil {
		return nil, err
	}
	objects, err := truth(r, "objects")
	if err != nil {
		return nil, err
	}
	out := Changes{Changes: []Change{}}
	var end time.Time // it counts from when the rights are known
	size := 0
	for e, err := range a.o.Source.Rows(journal.WithPause(r.Context(), scanTime), q) {
		if end.IsZero() {
			end = time.Now().Add(scanTime)
		}
		var paused *journal.Paused
		if errors.As(err, &paused) {
			out.Next = paused.Seq
			break
		}
		if err != nil {
			return nil, err
		}
		c, n, err := a.read(r.Context(), &e)
		size += n
		if err == nil && s.Matches(&c) || err != nil && readable(err) && !errors.Is(err, journal.ErrNotFound) {
			ch := Change{Seq: e.Seq, Event: a.event(&c, &e, s.Noise), Error: errorOf(err)}
			if objects {
				ch.Event.Data.Before, ch.Event.Data.After = c.Before, c.After
			}
			out.Changes = append(out.Changes, ch)
		} else if err != nil && !readable(err) {
			return nil, err
		}
		if len(out.Changes) == limit || size > pageBytes || time.Now().After(end) {
			out.Next = e.Seq
			break
		}
	}
	if out.Failed = s.Failed; s.LastError != nil {
		out.LastError = s.LastError.Error()
	}
	return out, nil
}

// read returns the change of an entry, and the size of its objects in bytes. With an error that is readable, the change
// has what is known.
func (a *api) read(ctx context.Context, e *journal.Entry) (change.Change, int, error) {
	before, after, err := e.Contents(ctx)
	if err != nil && !errors.Is(err, journal.ErrPurged) {
		c, _, _ := a.o.Changes.Make(ctx, &journal.Entry{Seq: e.Seq, ID: e.ID, Meta: e.Meta}, nil, nil, false)
		return c, 0, err
	}
	c, _, err := a.o.Changes.Make(ctx, e, before, after, false)
	return c, len(before) + len(after), err
}

// event returns the event of a change; without noise, it lacks quiet fields.
func (a *api) event(c *change.Change, e *journal.Entry, noise bool) event.Event {
	out := change.Event(a.o.Source.Cluster(), c)
	out.ID = e.ID
	if !noise {
		out.Data.Changes = slices.DeleteFunc(out.Data.Changes, func(c event.Change) bool { return c.Quiet })
	}
	return out
}

func (a *api) change(r *http.Request) (any, error) {
	e, err := a.o.Source.ByID(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c, _, err := a.read(r.Context(), &e)
	if err != nil && (!readable(err) || errors.Is(err, journal.ErrNotFound)) {
		return nil, err
	}
	out := Change{Seq: e.Seq, Event: a.event(&c, &e, true), Error: errorOf(err)}
	out.Event.Data.Before, out.Event.Data.After = c.Before, c.After
	return out, nil
}

func (a *api) kinds(r *http.Request) (any, error) {
	kinds, err := a.o.Source.Kinds(r.Context())
	if err != nil {
		return nil, err
	}
	out := Kinds{Kinds: []Kind{}}
	namespaces, err := namespaceNames(r)
	if err != nil {
		return nil, err
	}
	if len(namespaces) > 10 {
		return nil, problem(http.StatusBadRequest, "namespace: at most 10")
	}
	var targets []access.Target
	for _, k := range kinds {
		for _, ns := range namespaces {
			targets = append(targets, access.TargetOf(k, ns))
		}
	}
	allowed, err := access.May(r.Context(), targets)
	if err != nil {
		return nil, err
	}
	for i, k := range kinds {
		if n := len(namespaces); n == 0 || slices.Contains(allowed[i*n:(i+1)*n], true) {
			out.Kinds = append(out.Kinds, Kind(k))
		}
	}
	return out, nil
}

func (a *api) names(r *http.Request) (any, error) {
	s, err := a.asked(r)
	if err != nil {
		return nil, err
	}
	return a.namesOf(r, s.Types.Resources, 20)
}

// namesOf returns the names of objects of some kinds, or of all; otherwise is how many without a limit.
func (a *api) namesOf(r *http.Request, resources []string, otherwise int) (any, error) {
	p := r.URL.Query()
	limit, err := limitOf(p, otherwise, rawNames)
	if err != nil {
		return nil, err
	}
	namespaces, err := namespaceNames(r)
	if err != nil {
		return nil, err
	}
	if len(namespaces) > 1 {
		return nil, problem(http.StatusBadRequest, "namespace: say one, or leave it out for all")
	}
	names, err := a.o.Source.Names(r.Context(), resources, strings.Join(namespaces, ""), p.Get("prefix"), limit)
	if names == nil {
		names = []string{}
	}
	return Names{names}, err
}

// namespaceNames reads the parameter namespace of a path that does not take globs.
func namespaceNames(r *http.Request) ([]string, error) {
	o, err := selection.FromValues(url.Values{"namespace": r.URL.Query()["namespace"]})
	if err != nil {
		return nil, err
	}
	for _, ns := range o.Namespaces {
		if selection.IsGlob(ns) {
			return nil, problem(http.StatusBadRequest, "namespace: %q is a glob; this path takes names only", ns)
		}
		if err := selection.CheckNamespace(ns); err != nil {
			return nil, err
		}
	}
	return o.Namespaces, nil
}

// Objects are objects as they were.
type Objects struct {
	Objects []Object `json:"objects" doc:"ordered by kind, namespace and name"`
	// Next is the after of the next page.
	Next string `json:"next,omitempty" doc:"after of the next page; absent on the last"`
}

// Object is an object as it was.
type Object struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Object is absent where it is unknown: Error or KnownFrom says why.
	Object Text   `json:"object,omitempty" doc:"absent where it is unknown"`
	Error  *Error `json:"error,omitempty" doc:"why the object cannot be read"`
	// KnownFrom is when it was first seen, where the journal does not reach back to the time.
	KnownFrom time.Time `json:"knownFrom,omitzero" doc:"when it was first seen, if that is later"`
	Last      string    `json:"last,omitempty" doc:"id of the change that led to this"`
	Pending   string    `json:"pending,omitempty" doc:"id of a change that may have happened by then already"`
}

// at reads the parameter at; now without one.
func (a *api) at(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get("at")
	if text == "" {
		return a.o.Now(), nil
	}
	t, err := when.Parse(text, a.o.Now())
	if err != nil {
		return t, problem(http.StatusBadRequest, "at: %v", err)
	}
	return t, nil
}

func (a *api) objects(r *http.Request) (any, error) {
	s, err := a.asked(r)
	if err != nil {
		return nil, err
	}
	at, err := a.at(r)
	if err != nil {
		return nil, err
	}
	p := r.URL.Query()
	limit, err := limitOf(p, defaultPage, maxPage)
	if err != nil {
		return nil, err
	}
	states := a.o.Source.At(r.Context(), s.Query, at)
	if text := p.Get("after"); text != "" {
		after, err := parsePlace(text)
		if err != nil {
			return nil, err
		}
		states = after.next(states)
	}
	out := Objects{Objects: []Object{}}
	var last place
	size := 0
	for st, err := range states {
		switch {
		case err != nil:
			return nil, err
		case st.Err == nil && st.Presence == journal.Present && !a.labelled(s, st.JSON):
			continue
		}
		if len(out.Objects) == limit || size > pageBytes {
			out.Next = last.String()
			break
		}
		o := Object{Kind: Kind(st.Kind), Namespace: st.Namespace, Name: st.Name, UID: st.UID, Object: st.JSON, Error: errorOf(st.Err)}
		if st.Presence == journal.Unknown {
			o.KnownFrom = st.From
		}
		if st.Last != nil {
			o.Last = st.Last.ID
		}
		if st.Next != nil {
			o.Pending = st.Next.ID
		}
		out.Objects = append(out.Objects, o)
		last, size = placeOf(&st), size+len(st.JSON)
	}
	return out, nil
}

// labelled reports whether an object's JSON has the labels that a selection asks for.
func (a *api) labelled(s *selection.Selection, raw []byte) bool {
	var object map[string]any
	return json.Unmarshal(raw, &object) == nil && s.Labelled(object)
}

// Differences are the net differences between two times.
type Differences struct {
	Differences []event.Data `json:"differences" doc:"for each object that differs; these are no events and have no ids"`
	// Unknown counts objects whose state at one of the times is not known.
	Unknown int `json:"unknown,omitempty" doc:"objects whose state at one of the times is not known"`
	// Truncated says that there are more.
	Truncated bool `json:"truncated,omitempty" doc:"there are more: narrow the selection"`
}

func (a *api) differences(r *http.Request) (any, error) {
	s, err := a.asked(r)
	if err != nil {
		return nil, err
	}
	if s.Query.Since.IsZero() {
		return nil, problem(http.StatusBadRequest, "since: required")
	}
	if s.Query.Until.IsZero() {
		s.Query.Until = a.o.Now()
	}
	out := Differences{Differences: []event.Data{}}
	size := 0
	for both, err := range a.o.Source.Between(r.Context(), s.Query) {
		before, after := &both[0], &both[1]
		switch {
		case err != nil:
			return nil, err
		case before.Err != nil || after.Err != nil || before.Presence == journal.Unknown || after.Presence == journal.Unknown:
			out.Unknown++
			continue
		}
		c, err := a.o.Changes.Net(r.Context(), before, after)
		switch {
		case err != nil:
			return nil, err
		case c.Op == "", c.Op.Differs() && (len(c.Fields) == 0 || c.Quiet && !s.Noise), !s.MatchesLabels(&c):
			continue
		}
		if len(out.Differences) == maxPage || size > pageBytes {
			out.Truncated = true
			break
		}
		size += len(before.JSON) + len(after.JSON)
		d := change.Event(a.o.Source.Cluster(), &c).Data
		if !s.Noise {
			d.Changes = slices.DeleteFunc(d.Changes, func(c event.Change) bool { return c.Quiet })
		}
		out.Differences = append(out.Differences, d)
	}
	return out, nil
}

// named reads the selection of a request that names an object, and the time.
func (a *api) named(r *http.Request) (*selection.Selection, time.Time, error) {
	s, err := a.asked(r)
	if err != nil {
		return nil, time.Time{}, err
	}
	at, err := a.at(r)
	if err == nil && (len(s.Types.Names) != 1 || len(s.Types.Resources) == 0) {
		err = problem(http.StatusBadRequest, "type: say which object, as TYPE/NAME")
	}
	return s, at, err
}

// one returns the object that a request names, as it was at a time.
func (a *api) one(r *http.Request, s *selection.Selection, at time.Time) (*journal.State, error) {
	var found, unknown []journal.State
	for st, err := range a.o.Source.At(r.Context(), s.Query, at) {
		switch {
		case err != nil:
			return nil, err
		case st.Err != nil:
			return nil, st.Err
		case st.Presence == journal.Unknown:
			unknown = append(unknown, st)
		default:
			found = append(found, st)
		}
	}
	switch {
	case len(found) == 1:
		return &found[0], nil
	case len(found) > 1:
		return nil, usage.Errorf("several objects have this name: say which by namespace, by cluster, or by the group of the type")
	case len(unknown) > 0:
		return nil, problem(http.StatusNotFound, "the journal does not reach back that far: the object was first seen at %s", unknown[0].From.Format(time.RFC3339))
	}
	return nil, problem(http.StatusNotFound, "there was no such object then")
}

// Versions are a page of an object's history.
type Versions struct {
	Versions []Version `json:"versions" doc:"the newest first"`
	Next     int64     `json:"next,omitempty" doc:"before of the next page; absent on the last"`
}

// Version is a change of an object, and the object after it.
type Version struct {
	Change
	Object Text `json:"object,omitempty" doc:"the object after the change; absent if it was deleted"`
}

func (a *api) versions(r *http.Request) (any, error) {
	s, at, err := a.named(r)
	if err != nil {
		return nil, err
	}
	p := r.URL.Query()
	before, err := sequence(p.Get("before"), "before")
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(p, defaultPage, maxPage)
	if err != nil {
		return nil, err
	}
	var st *journal.State
	if before != 0 {
		st, err = a.continued(r, s, before)
	} else {
		st, err = a.one(r, s, at)
	}
	if err != nil {
		return nil, err
	}
	out := Versions{Versions: []Version{}}
	size := 0
	for step, err := range a.o.Source.History(r.Context(), st) {
		switch {
		case err != nil:
			return nil, err
		case step.Seq == before:
			continue
		case len(out.Versions) == limit || size > pageBytes:
			out.Next = out.Versions[len(out.Versions)-1].Seq
			return out, nil
		}
		c, _, err := a.o.Changes.Make(r.Context(), &step.Entry, step.Before, step.After, false)
		if err != nil {
			return nil, err
		}
		size += len(step.Before) + len(step.After)
		ev := a.event(&c, &step.Entry, true)
		ev.Data.Before, ev.Data.After = nil, nil // Object is the object
		out.Versions = append(out.Versions, Version{Change{Seq: step.Seq, Event: ev}, step.After})
	}
	return out, nil
}

// continued returns the object with whose change a page of its history ended, as it was after that change. It may have been
// deleted meanwhile, and another one have its name.
func (a *api) continued(r *http.Request, s *selection.Selection, seq int64) (*journal.State, error) {
	q := s.Query
	q.Owned, q.Quiet, q.Snapshots = nil, true, true
	e, err := a.entry(r, seq)
	if errors.Is(err, journal.ErrNotFound) || err == nil && !q.Has(&e.Meta, a.o.Source.Cluster()) {
		return nil, problem(http.StatusNotFound, "before: the journal has no change %d of this object, or no longer", seq)
	}
	if err != nil {
		return nil, err
	}
	return stateAfter(r.Context(), &e)
}

// Blame is an object's YAML, with the change that led to each line.
type Blame struct {
	Lines []BlameLine `json:"lines"`
}

// BlameLine is a line.
type BlameLine struct {
	Path string `json:"path" doc:"the field's path; see docs/paths.md"`
	Text string `json:"text"`
	// Time, Manager and Change are absent from lines that only name the fields below them.
	Since   time.Time `json:"since,omitzero" doc:"set if it got its value between since and time"`
	Time    time.Time `json:"time,omitzero" doc:"when it got its value"`
	Before  bool      `json:"before,omitempty" doc:"at that time or earlier: the journal does not reach back further"`
	Manager string    `json:"manager,omitempty" doc:"? where the API server does not say"`
	Change  string    `json:"change,omitempty" doc:"id of the change"`
}

func (a *api) blame(r *http.Request) (any, error) {
	s, at, err := a.named(r)
	if err != nil {
		return nil, err
	}
	st, err := a.one(r, s, at)
	if err != nil {
		return nil, err
	}
	lines, err := a.o.Changes.Blame(r.Context(), st)
	if err != nil {
		return nil, err
	}
	out := Blame{Lines: []BlameLine{}}
	size := 0
	for _, l := range lines {
		line := BlameLine{Path: l.Path().String(), Text: l.Text}
		if size += len(line.Path) + len(line.Text); size > maxAnswer { // the paths can be far larger than the object
			return nil, tooLarge()
		}
		if b := l.Blame; b != nil {
			line.Since, line.Time, line.Before, line.Manager, line.Change = b.Since, b.Time, b.Before, b.Manager, b.ID
		}
		out.Lines = append(out.Lines, line)
	}
	return out, nil
}

func (a *api) status(r *http.Request) (any, error) {
	if a.o.Status == nil {
		return nil, problem(http.StatusNotFound, "no daemon records into this journal")
	}
	return a.o.Status(r.Context())
}

func (*api) openapi(*http.Request) (any, error) {
	b, err := OpenAPI()
	return json.RawMessage(b), err
}
