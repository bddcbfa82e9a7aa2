package log

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/story"
)

// lastStories shows the last changes and stories.
func (t *lister) lastStories(ctx context.Context) error {
	var last []history.Item
	for i, err := range t.items(ctx, false, 0) {
		if err != nil {
			return err
		}
		if last = append(last, i); len(last) > t.o.Limit {
			break
		}
	}
	more := len(last) > t.o.Limit
	t.noteLimit(more, "line")
	if more {
		last = last[:t.o.Limit]
	}
	slices.Reverse(last)
	for _, i := range last {
		if err := t.show(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// allStories shows the changes and stories after a sequence number.
func (t *lister) allStories(ctx context.Context, after int64) error {
	for i, err := range t.items(ctx, true, after) {
		if err != nil {
			return err
		}
		if err := t.show(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (t *lister) show(ctx context.Context, i history.Item) error {
	if i.Story == nil {
		return t.change(ctx, i.Entry, true)
	}
	t.shown++
	return t.out.(*folding).story(i.Story)
}

// items yields the selected changes that are not routine, and the selected stories.
func (t *lister) items(ctx context.Context, oldestFirst bool, after int64) iter.Seq2[history.Item, error] {
	q := t.Query
	q.After, q.Before, q.OldestFirst = after, t.last+1, oldestFirst
	changes := t.rows(ctx, journal.Query{After: after, OldestFirst: oldestFirst})
	changes = matching(changes, func(e *journal.Entry) (bool, error) {
		if !history.HasSeverity(&q, e) || !t.ReadsObjects() {
			return history.HasSeverity(&q, e), nil
		}
		return t.matches(ctx, e)
	})
	stories := matching(t.journal.Stories(ctx, q), func(s *story.Tree) (bool, error) {
		if !t.o.Follow && render.Tell(s, t.end()).Silent {
			return false, nil
		}
		return t.matchesStory(ctx, s)
	})
	return history.Items(changes, stories, oldestFirst)
}

// matching yields what matches.
func matching[T any](all iter.Seq2[T, error], matches func(*T) (bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			ok := err != nil
			if !ok {
				ok, err = matches(&v)
			}
			if (ok || err != nil) && !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// matches reports whether a change matches by its objects. A damaged one does: it is reported.
func (t *lister) matches(ctx context.Context, e *journal.Entry) (bool, error) {
	c, err := t.journal.Change(ctx, e)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return false, nil
	case history.Damaged(err) && ctx.Err() == nil:
		return true, nil
	case err != nil:
		return false, err
	}
	return t.Matches(&c), nil
}

// matchesStory reports whether a story matches by its object: by the last change that it covers.
func (t *lister) matchesStory(ctx context.Context, s *story.Tree) (bool, error) {
	o := &s.Object
	if t.related != nil && t.related.Of(o.Group, o.Kind.Kind, o.Namespace, o.Name) == nil {
		return false, nil
	}
	if !t.ReadsObjects() {
		return true, nil
	}
	for e, err := range t.journal.Rows(ctx, journal.Query{After: s.Last - 1, Before: s.Last + 1, Quiet: true, Snapshots: true}) {
		if err != nil {
			return false, err
		}
		return t.matches(ctx, &e)
	}
	return false, nil
}

// story shows the changes of one story, and then the story.
func (o *Options) story(ctx context.Context, j *past.Journal, s *selected) error {
	tree, err := j.Story(ctx, strings.ToLower(o.Story))
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("the journal has no story whose id begins with %q: tattler log shows the ids", o.Story)
	case err != nil:
		return err
	}
	out, err := o.printer(s, j.Cluster())
	if err != nil {
		return err
	}
	t := &lister{o: o, journal: j, selected: s, out: out}
	seqs, err := j.Covered(ctx, &tree)
	if err != nil {
		return err
	}
	if tree.Cause != 0 && !slices.Contains(seqs, tree.Cause) {
		seqs = append([]int64{tree.Cause}, seqs...)
		slices.Sort(seqs)
	}
	s.Query = journal.Query{Quiet: true, Snapshots: true}
	if len(seqs) > 0 {
		if err := t.play(ctx, seqs); err != nil {
			return err
		}
	}
	if f, ok := out.(*folding); ok {
		if err := f.story(&tree); err != nil {
			return err
		}
	}
	if err := out.Flush(o.Now()); err != nil {
		return err
	}
	return t.complain("shown")
}
