package journal

import (
	"context"
	"fmt"
	"iter"

	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/story"
)

// Stories yields the selected stories, those that reached their last state last first; with OldestFirst, the others first.
// A query selects stories by their objects, their span of time, their severity or that of their parts, and the manager of the
// change that began them; its numbers bound the change that proved the last state. A story that is part of another selected one is left out: see
// Parts.
func (r *Reader) Stories(ctx context.Context, q Query) iter.Seq2[story.Story, error] {
	return func(yield func(story.Story, error) bool) {
		p := storyScan{r: r, q: q}
		for n := 0; !p.done; {
			var page []story.Story
			err := r.do(ctx, func() (err error) {
				page, err = p.next()
				return err
			})
			if err != nil {
				yield(story.Story{}, err)
				return
			}
			for i := range page {
				if n++; !yield(page[i], nil) || n == q.Limit {
					return
				}
			}
		}
	}
}

// Parts returns the stories that are part of one, or that it explains, in the order of their beginnings. q limits them as it
// limits Stories.
func (r *Reader) Parts(ctx context.Context, id string, q Query) (parts []story.Story, err error) {
	err = r.do(ctx, func() error {
		f, err := r.db.filter(Query{Scope: q.Scope})
		if err != nil {
			return err
		}
		all, err := r.db.stories("WHERE s.parent = ?1 OR s.via = ?1 ORDER BY s.begin, s.id", id)
		for i := range all {
			if err == nil && f.shows(&all[i]) {
				parts = append(parts, all[i].Story)
			}
		}
		return err
	})
	return parts, err
}

// StoryStates returns the states of a story, in the order in which they were proved.
func (r *Reader) StoryStates(ctx context.Context, id string) (states []story.State, err error) {
	err = r.do(ctx, func() (err error) {
		states, err = r.db.states("WHERE story = (SELECT id FROM stories WHERE key = ?) ORDER BY seq, n", id)
		return err
	})
	return states, err
}

// storyScan is one run of Stories, in pages. Each page is one read transaction.
type storyScan struct {
	r       *Reader
	q       Query
	f       *filter
	objects map[int64]bool // those that the query names; nil: all
	after   storyRecord    // the last one that was read
	heads   map[int64]bool // those that were yielded
	done    bool
}

// storyPage is how many stories a page reads.
const storyPage = 128

func (p *storyScan) next() (page []story.Story, err error) {
	if p.f == nil {
		if err = p.begin(); err != nil {
			return nil, err
		}
	}
	seq, id, where := p.f.high, int64(1)<<62, "WHERE (s.reached, s.id) < (?, ?) AND s.reached >= ? ORDER BY s.reached DESC, s.id DESC LIMIT "
	bound := p.f.low
	if p.f.q.OldestFirst {
		seq, id, where = p.f.low, 0, "WHERE (s.reached, s.id) > (?, ?) AND s.reached <= ? ORDER BY s.reached, s.id LIMIT "
		bound = p.f.high
	}
	if p.after.id != 0 {
		seq, id = p.after.State.Seq, p.after.id
	}
	all, err := p.r.db.stories(where+fmt.Sprint(storyPage), seq, id, bound)
	if err != nil {
		return nil, err
	}
	if p.done = len(all) < storyPage; len(all) > 0 {
		p.after = all[len(all)-1]
	}
	for i := range all {
		s := &all[i]
		if !p.selects(s) || p.f.severities != 0 && p.f.severities&(1<<severityNumber(s.Worst)|1<<severityNumber(s.State.Severity)) == 0 {
			continue
		}
		head, err := p.head(s)
		if err != nil {
			return nil, err
		}
		if head != nil && !p.heads[head.id] {
			p.heads[head.id] = true
			page = append(page, head.Story)
		}
	}
	return page, nil
}

// begin resolves the query.
func (p *storyScan) begin() (err error) {
	p.heads = map[int64]bool{}
	if p.f, err = p.r.db.filter(p.q); err == nil && p.f.byObject {
		p.objects = map[int64]bool{}
		for _, o := range p.f.objects {
			p.objects[o.id] = true
		}
	}
	return err
}

// head returns the story of which another one is a part, if both are selected; else that one. Without wanted severities, it is
// nil where the head comes by itself.
func (p *storyScan) head(s *storyRecord) (*storyRecord, error) {
	if s.Parent == "" {
		return s, nil
	}
	of, err := p.r.db.stories("WHERE s.key = ?", s.Parent)
	switch {
	case err != nil:
		return nil, err
	case len(of) == 0 || !p.selects(&of[0]):
		return s, nil
	case p.f.severities == 0:
		return nil, nil
	}
	return &of[0], nil
}

// selects reports whether a story matches.
func (p *storyScan) selects(s *storyRecord) bool {
	f := p.f
	switch {
	case p.objects != nil && !p.objects[s.object], f.clusters != nil && !f.clusters[s.of], f.kinds != nil && !f.kinds[s.of] && p.objects == nil,
		p.objects == nil && !f.has(s.namespace, s.Object.Name), !f.shows(s):
		return false
	case f.since != 0 && !s.End.IsZero() && s.End.UnixMilli() < f.since, f.until != 0 && s.Begin.UnixMilli() >= f.until:
		return false
	}
	return len(f.q.Managers) == 0 || selection.MatchesManager(f.q.Managers, s.Manager)
}

// shows reports whether the object of a story is visible.
func (f *filter) shows(s *storyRecord) bool {
	if f.scope == nil {
		return true
	}
	since, ok := f.scope.in(f.scope.kinds[s.of], s.namespace)
	return ok && s.created >= since
}
