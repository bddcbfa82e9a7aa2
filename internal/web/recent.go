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
	p     *Page
	f     *filter
	shown map[string]int64 // where the stories stand that may have an entry, by the ids of these; nil: unknown
	// silent have no line yet.
	silent []story.Tree
}

// read returns the entries of the stories that changed between two changes, and the ids of entries that are gone.
func (r *recent) read(ctx context.Context, from, to int64) (all []entry, gone []string, err error) {
	q := r.f.Query
	q.Since, q.Until, q.Before = time.Time{}, time.Time{}, to+1
	now := r.p.o.Now()
	var parts []string
	var waiting []story.Tree
	n, low, heads, lines := 0, int64(0), map[string]bool{}, map[string]int64{}
	for t, err := range r.p.past.builder.Stories(ctx, q) {
		if err != nil {
			return nil, nil, err
		}
		if n >= liveStories && t.Seq <= from {
			low = t.Seq + 1
			break
		}
		n++
		key, silent := keyOf(&t.Story), render.Tell(&t, now).Silent
		heads[key] = true
		changed := r.changed(&t, from, silent)
		switch {
		case !silent:
			lines[key] = t.Seq
			if changed {
				e, _ := r.p.storyEntry(r.f, &t, now)
				all = append(all, e)
			}
		case t.Open():
			waiting = append(waiting, t)
		}
		if r.shown == nil && changed { // the page may have lines of these
			if silent {
				gone = append(gone, key)
			}
			for i := range t.Parts {
				parts = append(parts, keyOf(&t.Parts[i]))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.shown)) {
		if _, has := lines[key]; !has && r.shown[key] >= low {
			gone = append(gone, key)
		}
	}
	for _, key := range parts {
		if !heads[key] {
			gone = append(gone, key)
		}
	}
	slices.Reverse(all)
	r.shown, r.silent = lines, waiting
	return all, gone, nil
}

// changed reports whether the entry of a story may not be what the page has.
func (r *recent) changed(t *story.Tree, from int64, silent bool) bool {
	if t.Last > from || t.Seq > from || slices.ContainsFunc(t.Parts, func(p story.Story) bool { return p.Last > from }) {
		return true
	}
	if r.shown != nil {
		_, has := r.shown[keyOf(&t.Story)]
		return !silent && !has
	}
	return !silent && render.Tell(t, t.Begin).Silent // time alone made it one
}

// due returns the entries of the silent stories that have a line now.
func (r *recent) due(now time.Time) (all []entry) {
	r.silent = slices.DeleteFunc(r.silent, func(t story.Tree) bool {
		e, ok := r.p.storyEntry(r.f, &t, now)
		if ok {
			r.shown[e.Key] = t.Seq
			all = append(all, e)
		}
		return ok
	})
	return all
}
