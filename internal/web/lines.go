package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/story"
)

// line returns the line that tell prints, as tattler log does; false without one.
func (p *Page) line(f *filter, tell func(t *render.Text) error) (line render.Line, ok bool) {
	t := render.New(render.Options{
		Each: func(l render.Line) { line, ok = l, true }, Terminal: true, Location: time.UTC, Today: p.o.Now, Namespaces: true,
		Flat: f.flat, Stories: !f.flat, Noise: f.noise(), Clusters: len(f.clusters) > 0, Cluster: f.own,
	})
	err := tell(t)
	return line, ok && err == nil
}

// ofChange returns the line of a change.
func (p *Page) ofChange(f *filter, c change.Change) (render.Line, bool) {
	return p.line(f, func(t *render.Text) error { return t.Change(c.At, c) })
}

// changeEntry makes the entry of a change. It returns false if the change has no line: then the entry says only what it is.
// damage is why the change cannot be read.
func (p *Page) changeEntry(f *filter, e *journal.Entry, c change.Change, damage error) (entry, bool) {
	line, ok := render.Line{At: e.At, Sign: "!", Name: fmt.Sprintf("change %s (%s) cannot be shown: %v", e.ID, e.Op, damage)}, true
	if damage == nil {
		if line, ok = p.ofChange(f, c); !ok {
			line = render.Line{At: e.At, Sign: "!", Name: string(e.Op) + " " + c.Subject()}
		}
	}
	n := p.entry(f, line)
	n.ID, n.Key, n.Order, n.Unfold = e.ID, fmt.Sprint("c", e.Seq), 2*e.Seq, "/changes/"+e.ID
	return n, ok
}

// storyEntry makes the entry of a story; false if the story needs none at this time.
func (p *Page) storyEntry(f *filter, s *story.Tree, now time.Time) (entry, bool) {
	line, ok := p.line(f, func(t *render.Text) error { return t.Story(s, now) })
	n := p.entry(f, line)
	n.Key, n.Order, n.Unfold = keyOf(&s.Story), 2*s.Seq+1, f.with("/unfold", "story", s.ID)
	return n, ok
}

// keyOf returns the id of the element of a story's entry.
func keyOf(s *story.Story) string { return "s" + s.ID }

// entries makes the entries of items, the newest first. The oldest is read first, which is faster.
func (p *Page) entries(ctx context.Context, f *filter, items []history.Item) (all []entry, err error) {
	now := f.end(p.o.Now())
	for _, i := range slices.Backward(items) {
		var e entry
		var ok bool
		if i.Story != nil {
			e, ok = p.storyEntry(f, i.Story, now)
		} else if e, ok, err = p.read(ctx, f, i.Entry); err != nil {
			return nil, err
		}
		if ok {
			all = append(all, e)
		}
	}
	slices.Reverse(all)
	return all, nil
}

// read reads a change and makes its entry; false if the change has no line, or was removed meanwhile.
func (p *Page) read(ctx context.Context, f *filter, e *journal.Entry) (n entry, ok bool, err error) {
	c, err := p.past.build(ctx, e)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return n, false, nil
	case err != nil && (ctx.Err() != nil || !history.Damaged(err)):
		return n, false, cmp.Or(ctx.Err(), err)
	}
	n, ok = p.changeEntry(f, e, c, err)
	return n, ok, nil
}
