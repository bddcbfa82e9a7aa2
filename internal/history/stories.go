package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/story"
)

// CheckStories builds the stories again from all changes of the journal, and calls found with each difference from those
// that were recorded. It returns how many stories it compared: those that began before the oldest change are left out, and
// without older changes nobody knows what others are part of. A change that cannot be read is an error.
func (t *Builder) CheckStories(ctx context.Context, found func(text string)) (compared int, err error) {
	last, err := t.source.Last(ctx)
	if err != nil {
		return 0, err
	}
	oldest, built, err := t.rebuild(ctx, last)
	if err != nil {
		return 0, err
	}
	recorded := map[string]story.Story{}
	for tree, err := range t.source.Stories(ctx, journal.Query{Before: last + 1}) {
		if err != nil {
			return 0, err
		}
		for _, s := range append([]story.Story{tree.Story}, tree.Parts...) {
			recorded[s.ID] = s
		}
	}
	for _, id := range slices.Sorted(maps.Keys(recorded)) {
		s := recorded[id]
		again, ok := built[id]
		switch {
		case s.First <= oldest && oldest > 1 || s.Last > last:
			continue
		case !ok:
			found(fmt.Sprintf("%s is recorded, and does not come of the changes", named(&s)))
		case essence(&s, oldest > 1) != essence(&again, oldest > 1):
			found(fmt.Sprintf("%s is recorded as %s, and the changes make it %s", named(&s), essence(&s, oldest > 1), essence(&again, oldest > 1)))
		}
		compared++
	}
	for _, id := range slices.Sorted(maps.Keys(built)) {
		s := built[id]
		if _, ok := recorded[id]; !ok && oldest <= 1 {
			found(fmt.Sprintf("%s comes of the changes, and is not recorded", named(&s)))
		}
	}
	return compared, nil
}

// rebuild follows the changes up to one, and returns the number of the oldest one and the stories.
func (t *Builder) rebuild(ctx context.Context, last int64) (oldest int64, all map[string]story.Story, err error) {
	engine := story.New(t.source.Cluster(), nil)
	all = map[string]story.Story{}
	for e, err := range t.source.Rows(ctx, journal.Query{Before: last + 1, Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			return 0, nil, err
		}
		if oldest == 0 {
			oldest = e.Seq
		}
		c, err := t.Change(ctx, &e)
		if err != nil {
			return 0, nil, err
		}
		in := story.Read(&c)
		in.Seq = e.Seq
		updates, err := engine.Apply(&in)
		if err != nil {
			return 0, nil, err
		}
		for _, u := range updates {
			all[u.Story.ID] = u.Story
		}
	}
	return oldest, all, nil
}

func named(s *story.Story) string {
	return fmt.Sprintf("story %s, the %s of %s %s/%s", s.ID, s.Kind, s.Object.Kind.Kind, s.Object.Namespace, s.Object.Name)
}

// essence is what must be the same, as a text: without what it is part of if that may have been removed.
func essence(s *story.Story, cut bool) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	text := fmt.Sprintf("%s since %s, %s at %s by change %d, until %s, worst %q, changes %d to %d: %d", s.Kind, at(s.Begin), s.State.Word, at(s.State.At), s.State.Seq, at(s.End), s.Worst, s.First, s.Last, s.Changes)
	if !cut {
		text += fmt.Sprintf(", part of %q, explained by %q", s.Parent, s.Via)
	}
	return text
}
