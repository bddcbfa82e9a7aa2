package log

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
)

// notes say what was not shown.
func (t *lister) notes(ctx context.Context) (said []string, err error) {
	coverage, err := t.coverage(ctx)
	if err != nil {
		return nil, err
	}
	if coverage != "" {
		said = append(said, coverage)
	}
	if t.quiet > 0 {
		more := ""
		if t.quiet == maxQuiet {
			more = " or more"
		}
		said = append(said, fmt.Sprintf("%s%s not shown (--noise)", count(t.quiet, "quiet change"), more))
	}
	if t.Failed > 0 {
		said = append(said, fmt.Sprintf("--where could not judge %s, such as %v", count(t.Failed, "change"), t.LastError))
	}
	if t.o.Follow {
		return said, nil
	}
	for _, note := range []func(context.Context) (string, error){t.removed, t.ended} {
		text, err := note(ctx)
		if err != nil {
			return nil, err
		}
		if text != "" {
			said = append(said, text)
		}
	}
	return said, nil
}

// removed says that a purge or retention removed changes while they were read, so that some of them may not have been shown.
func (t *lister) removed(ctx context.Context) (string, error) {
	if t.lowest == 0 {
		return "", nil
	}
	q := journal.Query{After: t.lowest - 1, Before: t.lowest + 1, Quiet: true, Snapshots: true}
	for _, err := range t.journal.Rows(ctx, q) {
		var damage *journal.DamagedError
		if errors.As(err, &damage) { // it is not removed
			err = nil
		}
		return "", err
	}
	return "changes were removed from the journal while it was read, by retention or a purge: some of them may not be shown", nil
}

// sumUp prints notes on stderr.
func (t *lister) sumUp(said []string) error {
	if len(said) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(t.o.IO.Err, terminal.Line(strings.Join(said, "; ")))
	return err
}

// ended describes where the journal ends, if no daemon writes it and later changes were requested.
func (t *lister) ended(ctx context.Context) (string, error) {
	at, err := t.journal.RecordedUntil(ctx)
	until := t.Query.Until
	if err != nil || at.IsZero() || !until.IsZero() && !until.After(at) || t.o.Recording(ctx, t.journal.Path()) {
		return "", err
	}
	return "no daemon is running: the journal ends at " + t.stamp(at), nil
}

// coverage says that nothing was found, and how far back the journal goes, if that is less than requested.
func (t *lister) coverage(ctx context.Context) (string, error) {
	since := t.Query.Since
	if t.shownAny() && since.IsZero() {
		return "", nil
	}
	oldest, err := t.journal.Oldest(ctx)
	switch {
	case err != nil:
		return "", err
	case oldest.IsZero():
		return "the journal is empty", nil
	case t.shownAny() && !oldest.After(since):
		return "", nil
	}
	text := "the journal reaches back to " + t.stamp(oldest)
	if t.shownAny() {
		return text + " only", nil
	}
	nothing := "nothing changed"
	if t.Narrowed() {
		nothing = "no such change"
	}
	if !since.IsZero() {
		nothing += " since " + t.stamp(since)
	}
	if until := t.Query.Until; !until.IsZero() {
		nothing += " before " + t.stamp(until)
	}
	if t.ReadsObjects() && !t.Noise {
		text += "; quiet changes were not looked at (--noise)"
	}
	return nothing + "; " + text, nil
}

// shownAny reports whether anything was shown.
func (t *lister) shownAny() bool {
	return t.shown+t.damaged > 0
}

// stamp formats a time for people, with the date if it is not today.
func (t *lister) stamp(at time.Time) string {
	now := t.o.Now()
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
