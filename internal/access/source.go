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
)

// Journal is a journal with all candidates of its lookups: *journal.Reader.
type Journal interface {
	history.Source
	Objects(ctx context.Context, resources []string, namespace, prefix string) iter.Seq2[journal.ObjectName, error]
	WithID(ctx context.Context, prefix string) iter.Seq2[journal.Entry, error]
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

type pauseKey struct{}

// Paused ends Rows when the time of WithPause has come: the caller resumes after, or before, sequence number Seq.
type Paused struct{ Seq int64 }

func (p *Paused) Error() string { return fmt.Sprintf("paused at change %d", p.Seq) }

// WithPause returns a context in which Rows pauses at a time. Otherwise it could read the whole journal without a row to
// show.
func WithPause(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, pauseKey{}, at)
}

// The numbers of values that are held back until rights are known, so that many are checked at once.
const (
	heldRows   = 256
	heldStates = 32
)

// Rows yields the visible changes that a query selects.
func (s *Source) Rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		v, err := s.newView(ctx, q)
		if err != nil {
			yield(journal.Entry{}, err)
			return
		}
		left := q.Limit
		all := q
		all.Limit = 0
		pause, _ := ctx.Value(pauseKey{}).(time.Time)
		read := int64(0)
		in := func(yield func(journal.Entry, error) bool) {
			for e, err := range s.Journal.Rows(ctx, all) {
				if !yield(e, err) || err != nil {
					return
				}
				if read = e.Seq; !pause.IsZero() && time.Now().After(pause) {
					yield(journal.Entry{}, &Paused{read})
					return
				}
			}
		}
		filter(v.checker, in, heldRows, v.targets, v.shows, func(e journal.Entry, err error) bool {
			if !yield(e, err) {
				return false
			}
			left--
			return left != 0
		})
	}
}

// filter yields the values that may be shown. An error ends it, after the values before it.
func filter[T any](c *checker, in iter.Seq2[T, error], most int, targets func(*T) []Target, shows func(*T) bool, yield func(T, error) bool) {
	var none T
	var held []T
	batch := min(16, most) // grows: few values may be wanted
	flush := func() bool {
		if err := c.decide(); err != nil {
			yield(none, err)
			return false
		}
		for i := range held {
			if shows(&held[i]) && !yield(held[i], nil) {
				return false
			}
		}
		held = held[:0]
		return true
	}
	for t, err := range in {
		if err != nil {
			if flush() {
				yield(none, err)
			}
			return
		}
		held = append(held, t)
		c.want(targets(&t)...)
		if len(c.unknown) == 0 || len(held) >= batch {
			if !flush() {
				return
			}
			batch = min(2*batch, most)
		}
	}
	flush()
}

// maxCandidates bounds the changes and names that are checked for one lookup.
const maxCandidates = 4096

// ByID returns the visible change whose id is, or begins with, prefix.
func (s *Source) ByID(ctx context.Context, prefix string) (journal.Entry, error) {
	if prefix == "" {
		return journal.Entry{}, journal.ErrNotFound
	}
	v, err := s.newView(ctx, journal.Query{})
	if err != nil {
		return journal.Entry{}, err
	}
	var found []journal.Entry
	n := 0
	in := func(yield func(journal.Entry, error) bool) {
		for e, err := range s.Journal.WithID(ctx, prefix) {
			if n++; n > maxCandidates {
				yield(e, fmt.Errorf("the id %q is too short to find a change: give more letters of it", prefix))
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
	filter(v.checker, in, heldStates, v.targets, v.shows, func(e journal.Entry, e2 error) bool {
		if err = e2; err == nil {
			found = append(found, e)
		}
		return err == nil && len(found) < 4
	})
	switch {
	case err != nil && len(found) < 2:
		return journal.Entry{}, err
	case len(found) == 0:
		return journal.Entry{}, journal.ErrNotFound
	case len(found) > 1:
		a := &journal.AmbiguousError{Prefix: prefix}
		for i := range found {
			a.IDs = append(a.IDs, found[i].ID)
		}
		return journal.Entry{}, a
	}
	return found[0], nil
}

// At yields the visible states of objects at a time.
func (s *Source) At(ctx context.Context, q journal.Query, t time.Time) iter.Seq2[journal.State, error] {
	return func(yield func(journal.State, error) bool) {
		c := newChecker(ctx)
		filter(c, s.Journal.At(ctx, q, t), heldStates,
			func(s *journal.State) []Target { return []Target{TargetOf(s.Kind, s.Namespace)} },
			func(s *journal.State) bool { return c.known[TargetOf(s.Kind, s.Namespace)] }, yield)
	}
}

// Between yields the visible states of objects at both ends of a query's times.
func (s *Source) Between(ctx context.Context, q journal.Query) iter.Seq2[[2]journal.State, error] {
	return func(yield func([2]journal.State, error) bool) {
		c := newChecker(ctx)
		filter(c, s.Journal.Between(ctx, q), heldStates,
			func(b *[2]journal.State) []Target {
				return []Target{TargetOf(b[0].Kind, b[0].Namespace), TargetOf(b[1].Kind, b[1].Namespace)}
			},
			func(b *[2]journal.State) bool {
				return c.known[TargetOf(b[0].Kind, b[0].Namespace)] && c.known[TargetOf(b[1].Kind, b[1].Namespace)]
			}, yield)
	}
}

// History yields the visible changes that led to a state.
func (s *Source) History(ctx context.Context, state *journal.State) iter.Seq2[journal.Step, error] {
	return func(yield func(journal.Step, error) bool) {
		c := newChecker(ctx)
		filter(c, s.Journal.History(ctx, state), heldStates,
			func(s *journal.Step) []Target { return []Target{TargetOf(s.Kind, s.Namespace)} },
			func(s *journal.Step) bool { return c.known[TargetOf(s.Kind, s.Namespace)] }, yield)
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

// errEnough ends a search for names.
var errEnough = errors.New("enough")

// Names returns names of visible objects: see journal.Reader.Names. If very many objects are not visible, it returns
// fewer names than there are.
func (s *Source) Names(ctx context.Context, resources []string, namespace, prefix string, limit int) (names []string, err error) {
	kinds, err := s.Journal.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	of := map[resource]journal.Kind{}
	for _, k := range kinds {
		of[resourceOf(k)] = k
	}
	target := func(o *journal.ObjectName) Target { return TargetOf(of[resource{o.Resource, o.Cluster}], o.Namespace) }
	n := 0
	in := func(yield func(journal.ObjectName, error) bool) {
		for o, err := range s.Journal.Objects(ctx, resources, namespace, prefix) {
			if n++; n > maxCandidates {
				err = errEnough
			}
			if !yield(o, err) {
				return
			}
		}
	}
	c := newChecker(ctx)
	filter(c, in, heldRows, func(o *journal.ObjectName) []Target { return []Target{target(o)} },
		func(o *journal.ObjectName) bool { return c.known[target(o)] },
		func(o journal.ObjectName, e error) bool {
			if err = e; err != nil {
				return false
			}
			if len(names) == 0 || names[len(names)-1] != o.Name {
				names = append(names, o.Name)
			}
			return len(names) != limit
		})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return names, err
}
