package log

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/story"
)

// item is what has a line: a change, or a story.
type item struct {
	seq   int64
	entry *journal.Entry
	story *story.Tree
}

// lastStories shows the last changes and stories.
func (t *lister) lastStories(ctx context.Context) error {
	var last []item
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

func (t *lister) show(ctx context.Context, i item) error {
	if i.story == nil {
		return t.change(ctx, i.entry, true)
	}
	t.shown++
	return t.out.(*folding).story(i.story)
}

// items yields the selected changes that are not routine, and the selected stories, each after the change that brought it to
// where it stands.
func (t *lister) items(ctx context.Context, oldestFirst bool, after int64) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		changes, stopChanges := iter.Pull2(t.rows(ctx, journal.Query{After: after, OldestFirst: oldestFirst}))
		defer stopChanges()
		q := t.Query
		q.After, q.Before, q.OldestFirst = after, t.last+1, oldestFirst
		stories, stopStories := iter.Pull2(t.journal.Stories(ctx, q))
		defer stopStories()
		var c, s item
		for {
			var err error
			if c.seq == 0 {
				c, err = t.nextChange(ctx, changes)
			}
			if s.seq == 0 && err == nil {
				s, err = t.nextStory(ctx, stories)
			}
			if err != nil {
				yield(item{}, err)
				return
			}
			var next *item
			switch {
			case c.seq == end && s.seq == end:
				return
			case s.seq == end, c.seq != end && (c.seq < s.seq) == oldestFirst && c.seq != s.seq, c.seq == s.seq && oldestFirst:
				next = &c
			default:
				next = &s
			}
			if !yield(*next, nil) {
				return
			}
			next.seq = 0
		}
	}
}

// end is the number of the item after the last one.
const end = 1<<63 - 1

// nextChange returns the next change that matches.
func (t *lister) nextChange(ctx context.Context, next func() (journal.Entry, error, bool)) (item, error) {
	for {
		e, err, ok := next()
		if !ok {
			return item{seq: end}, nil
		}
		matches := err == nil
		if matches = matches && (e.Op == event.Absent || selection.HasSeverity(t.Query.Severities, &e.Meta)); matches && t.ReadsObjects() {
			matches, err = t.matches(ctx, &e)
		}
		if err != nil {
			return item{}, err
		}
		if matches {
			return item{seq: e.Seq, entry: &e}, nil
		}
	}
}

// nextStory returns the next story that matches and needs a line.
func (t *lister) nextStory(ctx context.Context, next func() (story.Tree, error, bool)) (item, error) {
	for {
		s, err, ok := next()
		if !ok {
			return item{seq: end}, nil
		}
		matches := err == nil
		if matches {
			matches, err = t.matchesStory(ctx, &s)
		}
		if err != nil {
			return item{}, err
		}
		if matches && (t.o.Follow || !render.Tell(&s, t.end()).Silent) {
			return item{seq: s.Seq, story: &s}, nil
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
	seqs, err := t.changesOf(ctx, &tree)
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
