package history

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/story"
)

// Item is what has a line of its own: a change, or a story, which stands for routine changes.
type Item struct {
	Seq   int64 // of the change, or of the one with which the story came to where it stands
	Entry *journal.Entry
	Story *story.Tree
}

// HasSeverity reports whether a change that is not routine has a severity that a query wants. Beside stories, an absence has any:
// while nothing was recorded, everything may have failed.
func HasSeverity(q *journal.Query, e *journal.Entry) bool {
	return e.Op == event.Absent || selection.HasSeverity(q.Severities, &e.Meta)
}

// Items merges changes and stories by their sequence numbers. Both are in this order. A change comes before the stories that it
// brought to where they stand. An error of either ends the sequence at once.
func Items(changes iter.Seq2[journal.Entry, error], stories iter.Seq2[story.Tree, error], oldestFirst bool) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		nextChange, stopChanges := iter.Pull2(items(changes, func(e journal.Entry) Item { return Item{Seq: e.Seq, Entry: &e} }))
		defer stopChanges()
		nextStory, stopStories := iter.Pull2(items(stories, func(t story.Tree) Item { return Item{Seq: t.Seq, Story: &t} }))
		defer stopStories()
		change, err, changes := nextChange()
		if err != nil {
			yield(Item{}, err)
			return
		}
		story, err, stories := nextStory()
		for err == nil && (changes || stories) {
			first := change.Seq > story.Seq
			if oldestFirst {
				first = change.Seq <= story.Seq
			}
			if changes && (first || !stories) {
				if !yield(change, nil) {
					return
				}
				change, err, changes = nextChange()
			} else {
				if !yield(story, nil) {
					return
				}
				story, err, stories = nextStory()
			}
		}
		if err != nil {
			yield(Item{}, err)
		}
	}
}

func items[T any](all iter.Seq2[T, error], item func(T) Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for v, err := range all {
			if err != nil {
				yield(Item{}, err)
				return
			}
			if !yield(item(v), nil) {
				return
			}
		}
	}
}

// Stories yields the stories that a query selects, with the names of their kinds.
func (t *Builder) Stories(ctx context.Context, q journal.Query) iter.Seq2[story.Tree, error] {
	return func(yield func(story.Tree, error) bool) {
		for s, err := range t.source.Stories(ctx, q) {
			s.Object.Names = t.NamesOf(ctx, s.Object.Kind)
			if !yield(s, err) {
				return
			}
		}
	}
}

// Story returns the story whose id begins with prefix, with the names of its kind.
func (t *Builder) Story(ctx context.Context, prefix string) (story.Tree, error) {
	s, err := t.source.Story(ctx, prefix)
	s.Object.Names = t.NamesOf(ctx, s.Object.Kind)
	return s, err
}

// Covered returns the numbers of the routine changes that a story and its parts cover, in order. The others have lines of their
// own.
func (t *Builder) Covered(ctx context.Context, tree *story.Tree) (seqs []int64, err error) {
	for _, s := range append([]story.Story{tree.Story}, tree.Parts...) {
		q := journal.Query{
			After: s.First - 1, Before: s.Last + 1, Clusters: []string{s.Object.ClusterOr(t.Cluster())},
			Namespaces: []string{s.Object.Namespace}, Resources: []string{s.Object.GroupResource()}, UID: s.Object.UID, OldestFirst: true,
		}
		for e, err := range t.source.Rows(ctx, q) {
			if err != nil {
				return nil, err
			}
			if e.Routine {
				seqs = append(seqs, e.Seq)
			}
		}
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), nil
}

// Each calls f with the changes of the given numbers, which are in order. A change that was removed meanwhile is left out; of
// one that is damaged, damage says why it cannot be read.
func (t *Builder) Each(ctx context.Context, seqs []int64, f func(e *journal.Entry, c change.Change, damage error) error) error {
	for len(seqs) > 0 {
		n := 1
		for n < len(seqs) && seqs[n]-seqs[n-1] <= 16 { // one query reads nearby changes
			n++
		}
		q := journal.Query{After: seqs[0] - 1, Before: seqs[n-1] + 1, OldestFirst: true, Quiet: true, Snapshots: true}
		for e, err := range t.source.Rows(ctx, q) {
			if err != nil {
				return err
			}
			if _, wanted := slices.BinarySearch(seqs[:n], e.Seq); !wanted {
				continue
			}
			c, err := t.Change(ctx, &e)
			switch {
			case errors.Is(err, journal.ErrNotFound):
				continue
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && !Damaged(err):
				return err
			}
			if err := f(&e, c, err); err != nil {
				return err
			}
		}
		seqs = seqs[n:]
	}
	return nil
}
