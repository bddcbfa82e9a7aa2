package access

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/story"
)

// Journal is a journal that can be read within a scope: *journal.Reader.
type Journal interface {
	history.Source
	NamesWithin(ctx context.Context, s *journal.Scope, resources []string, namespace, prefix string, limit int) ([]string, error)
	WithID(ctx context.Context, s *journal.Scope, prefix string, most int) iter.Seq2[journal.Entry, error]
	StoryWithin(ctx context.Context, s *journal.Scope, prefix string) (story.Tree, error)
	Places(ctx context.Context) (map[selection.Place]bool, error)
	PlacesBetween(ctx context.Context, after, before int64) (map[selection.Place]bool, error)
}

var _ Journal = (*journal.Reader)(nil)

// Source is a history.Source that shows what the viewer of each call's context may see: see With. It is as if the
// journal had nothing else; the package comment has the exceptions.
//
// A gap of a whole kind is shown to viewers of the kind in all namespaces, and where a query names a namespace in which
// the viewer may see the kind. Absences concern everybody.
//
// Each method is written out: a promoted one would show everything.
type Source struct {
	// Journal is everything, for callers that show nothing of it to a viewer.
	Journal Journal
}

var _ history.Source = (*Source)(nil)

// New returns a Source. It owns the journal: Close closes it.
func New(j Journal) *Source { return &Source{j} }

// Cluster is the name in the ids of changes.
func (s *Source) Cluster() string { return s.Journal.Cluster() }

// Clusters returns the names of the recorded clusters.
func (s *Source) Clusters(ctx context.Context) ([]string, error) { return s.Journal.Clusters(ctx) }

// Last returns the newest sequence number.
func (s *Source) Last(ctx context.Context) (int64, error) { return s.Journal.Last(ctx) }

// RecordedUntil returns up to when a daemon recorded.
func (s *Source) RecordedUntil(ctx context.Context) (time.Time, error) {
	return s.Journal.RecordedUntil(ctx)
}

// RecordedSince returns when the oldest change happened, which may be one that the viewer may not see; the zero time in an
// empty journal.
func (s *Source) RecordedSince(ctx context.Context) (time.Time, error) {
	for e, err := range s.Journal.Rows(ctx, journal.Query{Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}) {
		return e.Time, err
	}
	return time.Time{}, nil
}

// Schema returns the merge-key schema of a kind, which discovery shows, too.
func (s *Source) Schema(ctx context.Context, k journal.Kind, seq int64) (journal.KindSchema, error) {
	return s.Journal.Schema(ctx, k, seq)
}

// ShortNames returns the short names of kinds, which discovery shows, too.
func (s *Source) ShortNames(ctx context.Context) (map[string][]string, error) {
	return s.Journal.ShortNames(ctx)
}

// Close closes the journal.
func (s *Source) Close() error { return s.Journal.Close() }

// Rows yields the visible changes that a query selects.
func (s *Source) Rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	return within(ctx, s, q, s.Journal.Rows)
}

// Stories yields the visible stories that a query selects, with what is visible of them. Parts may be of any kind, so the
// rights to all kinds in the query's namespaces decide.
func (s *Source) Stories(ctx context.Context, q journal.Query) iter.Seq2[story.Tree, error] {
	return func(yield func(story.Tree, error) bool) {
		scope, err := s.view(ctx, &journal.Query{Clusters: q.Clusters, Namespaces: q.Namespaces, Without: q.Without})
		if err != nil {
			yield(story.Tree{}, err)
			return
		}
		q.Scope = scope
		s.Journal.Stories(ctx, q)(yield)
	}
}

// Story returns the visible story whose id begins with prefix. As with ByID, only the rights to the story and its parts are
// checked.
func (s *Source) Story(ctx context.Context, prefix string) (story.Tree, error) {
	ids, places := []string{prefix}, map[selection.Place]bool{}
	for len(ids) > 0 {
		t, err := s.Journal.Story(ctx, ids[0])
		var several *journal.AmbiguousError
		if ids = ids[1:]; errors.As(err, &several) {
			ids = append(ids, several.IDs...)
			continue
		}
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return story.Tree{}, err
		}
		for _, of := range slices.Concat([]story.Story{t.Story}, t.Parts, t.Via) {
			places[placeOf(of.Object.Kind, of.Object.Namespace)] = true
		}
	}
	scope, err := s.viewOfPlaces(ctx, places)
	if err != nil {
		return story.Tree{}, err
	}
	return s.Journal.StoryWithin(ctx, scope, prefix)
}

// viewOfPlaces returns the visible ones of some places, for an id. One that the journal does not have costs a review, too.
func (s *Source) viewOfPlaces(ctx context.Context, places map[selection.Place]bool) (*journal.Scope, error) {
	return s.viewOf(ctx, &journal.Query{}, func(narrow []journal.Kind) (map[selection.Place]bool, error) {
		if !slices.ContainsFunc(narrow, func(k journal.Kind) bool { return inNamespace(places, k) }) {
			places[placeOf(narrow[0], "-unknown-")] = true
		}
		return places, nil
	})
}

// within yields what read yields of the visible part of a query.
func within[T any](ctx context.Context, s *Source, q journal.Query, read func(context.Context, journal.Query) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		scope, err := s.view(ctx, &q)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		q.Scope = scope
		read(ctx, q)(yield)
	}
}

// maxCandidates bounds the changes that are looked at for one id.
const maxCandidates = 4096

// ByID returns the visible change whose id is, or begins with, prefix. Ids are digests: who asks for one that it cannot see
// learns no name. So only the rights to the changes with this id are checked.
func (s *Source) ByID(ctx context.Context, prefix string) (journal.Entry, error) {
	if prefix == "" {
		return journal.Entry{}, journal.ErrNotFound
	}
	places := map[selection.Place]bool{}
	for e, err := range s.Journal.WithID(ctx, nil, prefix, maxCandidates) {
		if err != nil {
			return journal.Entry{}, shortID(prefix, err)
		}
		places[placeOf(e.Kind, e.Namespace)] = true
	}
	scope, err := s.viewOfPlaces(ctx, places)
	if err != nil {
		return journal.Entry{}, err
	}
	var found []journal.Entry
	for e, err := range s.Journal.WithID(ctx, scope, prefix, maxCandidates) {
		if err != nil {
			return journal.Entry{}, shortID(prefix, err)
		}
		if found = append(found, e); len(found) > 3 {
			break
		}
	}
	switch len(found) {
	case 0:
		return journal.Entry{}, journal.ErrNotFound
	case 1:
		return found[0], nil
	}
	a := &journal.AmbiguousError{Prefix: prefix}
	for i := range found {
		a.IDs = append(a.IDs, found[i].ID)
	}
	return journal.Entry{}, a
}

func inNamespace(places map[selection.Place]bool, k journal.Kind) bool {
	for p := range places {
		if p.Namespace != "" && p == placeOf(k, p.Namespace) {
			return true
		}
	}
	return false
}

func shortID(prefix string, err error) error {
	if errors.Is(err, journal.ErrShortID) {
		return fmt.Errorf("the id %q is too short to find a change: give more letters of it", prefix)
	}
	return err
}

// At yields the visible states of objects at a time.
func (s *Source) At(ctx context.Context, q journal.Query, t time.Time) iter.Seq2[journal.State, error] {
	return within(ctx, s, q, func(ctx context.Context, q journal.Query) iter.Seq2[journal.State, error] {
		return s.Journal.At(ctx, q, t)
	})
}

// Between yields the visible states of objects at both ends of a query's times.
func (s *Source) Between(ctx context.Context, q journal.Query) iter.Seq2[[2]journal.State, error] {
	return within(ctx, s, q, s.Journal.Between)
}

// History yields the changes that led to a state, if its last one is visible: so are then the others of the object.
func (s *Source) History(ctx context.Context, state *journal.State) iter.Seq2[journal.Step, error] {
	return func(yield func(journal.Step, error) bool) {
		if state.Last == nil {
			return
		}
		for _, err := range s.Rows(ctx, journal.Query{After: state.Last.Seq - 1, Before: state.Last.Seq + 1, Quiet: true, Snapshots: true}) {
			if err != nil {
				yield(journal.Step{}, err)
				return
			}
			s.Journal.History(ctx, state)(yield)
		}
	}
}

// Kinds returns the recorded kinds, without cluster-scoped ones that the viewer may not get.
func (s *Source) Kinds(ctx context.Context) ([]journal.Kind, error) {
	kinds, err := s.Journal.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	c := newChecker(ctx)
	for _, k := range kinds {
		if !k.Namespaced {
			c.want(TargetOf(k, ""))
		}
	}
	if _, err := May(ctx, nil); err != nil { // also where there is nothing to decide
		return nil, err
	}
	if err := c.decide(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(kinds, func(k journal.Kind) bool { return !k.Namespaced && !c.known[TargetOf(k, "")] }), nil
}

// Names returns names of visible objects: see journal.Reader.Names.
func (s *Source) Names(ctx context.Context, resources []string, namespace, prefix string, limit int) (names []string, err error) {
	q := journal.Query{Resources: resources}
	if namespace != "" {
		q.Namespaces = []string{namespace}
	}
	scope, err := s.view(ctx, &q)
	if err != nil {
		return nil, err
	}
	return s.Journal.NamesWithin(ctx, scope, resources, namespace, prefix, limit)
}

// Counts returns the visible series: see journal.Reader.Counts. A gap of a whole kind counts for viewers of the kind in all
// namespaces. The Journal must be a Counter.
func (s *Source) Counts(ctx context.Context, q journal.Query, step time.Duration) ([]journal.Series, error) {
	counter, ok := s.Journal.(Counter)
	if !ok {
		return nil, errNoCounts
	}
	var err error
	if q.Scope, err = s.view(ctx, &q); err != nil {
		return nil, err
	}
	return counter.Counts(ctx, q, step)
}

// Counter counts changes without reading them: *journal.Reader.
type Counter interface {
	Counts(ctx context.Context, q journal.Query, step time.Duration) ([]journal.Series, error)
}

// errNoCounts is an error of the program.
var errNoCounts = errors.New("the journal cannot count changes")
