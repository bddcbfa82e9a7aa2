package log

import (
	"context"
	"fmt"
	"math"
)

// The maximum number of changes to play back: maxFolded for each line, but at least minPlayed.
const (
	maxFolded = 60
	minPlayed = 3000
)

// lastStories shows the last stories. Only folding shows how many changes a story has, so it plays back more and more
// changes until there are enough stories, or too many changes.
func (t *lister) lastStories(ctx context.Context) error {
	most := max(maxFolded*t.o.Limit, minPlayed)
	if len(t.lines) > 0 {
		most = math.MaxInt // such lines may be rare
	}
	for changes := 2 * t.o.Limit; ; changes = min(5*changes, most) {
		t.quiet, t.shown, t.damaged, t.Failed = 0, 0, 0, 0
		out, err := t.o.printer(t.selected, t.journal.Cluster())
		if err != nil {
			return err
		}
		stories := out.(*folding)
		t.out, stories.gate.keep = stories, t.o.Limit
		seqs, oldest, err := t.newest(ctx, changes)
		if err != nil {
			return err
		}
		all := len(seqs) < changes
		if len(seqs) > 0 {
			q := t.Query
			q.Since, q.Before = oldest.Add(-storyTime), seqs[0]
			if stories.gate.from = oldest; all {
				stories.gate.from = t.Query.Since
			}
			if err := t.warmUp(ctx, q); err != nil {
				return err
			}
			if err := t.play(ctx, seqs); err != nil {
				return err
			}
		}
		if !t.o.Follow {
			if err := stories.Flush(t.end()); err != nil {
				return err
			}
		}
		enough := stories.gate.shown > t.o.Limit
		switch {
		case enough:
			t.noteLimit(true, "line")
		case !all && changes < most:
			continue
		case !all:
			t.limited(fmt.Sprintf("only the last %d changes, which are fewer lines than --limit; earlier ones are left out (--since shows them)", len(seqs)))
		}
		return stories.gate.open()
	}
}

// lastChanges shows the last changes, one line for each.
func (t *lister) lastChanges(ctx context.Context) error {
	seqs, _, err := t.newest(ctx, t.o.Limit+1)
	if err != nil || len(seqs) == 0 {
		return err
	}
	more := len(seqs) > t.o.Limit
	t.noteLimit(more, "change")
	if more {
		seqs = seqs[1:]
	}
	return t.play(ctx, seqs)
}

// noteLimit says, before the first line, that the limit leaves something out.
func (t *lister) noteLimit(more bool, what string) {
	if !more {
		return
	}
	if t.o.Limit > 1 {
		what = fmt.Sprintf("%d %ss", t.o.Limit, what)
	}
	t.limited("only the last " + what + "; earlier ones are left out (--limit 0 shows all)")
}

// limited says what the limit leaves out, on stderr and on the page.
func (t *lister) limited(text string) {
	t.limits = append(t.limits, text)
	fmt.Fprintln(t.o.IO.Err, text)
}
