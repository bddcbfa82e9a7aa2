package web

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/story"
)

// recent follows the stories that changed last. A story may get a line without a change of its own: because of a part of it, or
// after a while. It may also lose its line, once it is known to be part of another one.
type recent struct {
	p *Page
	f *filter
	// lines are where the stories stand that have an entry on the page, by the ids of these; nil: unknown.
	lines map[string]int64
	// silent stories have no line yet.
	silent []story.Tree
}

// read returns the entries of the stories that changed between two changes, and the ids of entries that are gone.
func (r *recent) read(ctx context.Context, from, to int64) (all []entry, gone []string, err error) {
	trees, low, err := r.newest(ctx, from, to)
	if err != nil {
		return nil, nil, err
	}
	now, before, lines := r.p.o.Now(), r.lines, map[string]int64{}
	if before == nil {
		before = map[string]int64{}
	}
	r.silent = nil
	for i := range trees {
		t := &trees[i]
		silent := render.Tell(t, now).Silent
		changed := r.changed(t, from, silent)
		switch {
		case !silent:
			lines[keyOf(&t.Story)] = t.Seq
			if changed {
				e, _ := r.p.storyEntry(r.f, t, now)
				all = append(all, e)
			}
		case t.Open():
			r.silent = append(r.silent, *t)
		}
		if r.lines == nil && changed { // the page may have lines of these
			before[keyOf(&t.Story)] = t.Seq
			for n := range t.Parts {
				before[keyOf(&t.Parts[n])] = t.Seq
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, has := lines[key]; !has && before[key] >= low {
			gone = append(gone, key)
		}
	}
	r.lines = lines
	return all, gone, nil
}

// newest returns the stories that changed last, the oldest first: all of those that moved after a change. Others may stand before
// low.
func (r *recent) newest(ctx context.Context, from, to int64) (trees []story.Tree, low int64, err error) {
	q := r.f.Query
	q.Since, q.Until, q.Before = time.Time{}, time.Time{}, to+1
	for t, err := range r.p.past.builder.Stories(ctx, q) {
		if err != nil {
			return nil, 0, err
		}
		if len(trees) >= liveStories && t.Seq <= from {
			low = t.Seq + 1
			break
		}
		trees = append(trees, t)
	}
	slices.Reverse(trees)
	return trees, low, nil
}

// changed reports whether the entry of a story may not be what the page has.
func (r *recent) changed(t *story.Tree, from int64, silent bool) bool {
	if t.Last > from || t.Seq > from || slices.ContainsFunc(t.Parts, func(p story.Story) bool { return p.Last > from }) {
		return true
	}
	if r.lines != nil {
		_, has := r.lines[keyOf(&t.Story)]
		return !silent && !has
	}
	return !silent && render.Tell(t, t.Begin).Silent // time alone made it one
}

// due returns the entries of the silent stories that have a line now.
func (r *recent) due(now time.Time) (all []entry) {
	r.silent = slices.DeleteFunc(r.silent, func(t story.Tree) bool {
		e, ok := r.p.storyEntry(r.f, &t, now)
		if ok {
			r.lines[e.Key] = t.Seq
			all = append(all, e)
		}
		return ok
	})
	return all
}
