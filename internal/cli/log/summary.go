package log

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// sumUp says on stderr what is not shown.
func (t *telling) sumUp(ctx context.Context) error {
	var said []string
	reach, err := t.reach(ctx)
	if err != nil {
		return err
	}
	if reach != "" {
		said = append(said, reach)
	}
	if t.quiet > 0 {
		more := ""
		if t.quiet == maxQuiet {
			more = " or more"
		}
		said = append(said, fmt.Sprintf("%s%s not shown (--noise)", count(t.quiet, "quiet change"), more))
	}
	if t.unjudged > 0 {
		said = append(said, fmt.Sprintf("--where could not judge %s, such as %v", count(t.unjudged, "change"), t.lastErr))
	}
	if !t.o.Follow {
		ended, err := t.ended(ctx)
		if err != nil {
			return err
		}
		if ended != "" {
			said = append(said, ended)
		}
	}
	if len(said) == 0 {
		return nil
	}
	_, err = fmt.Fprintln(t.o.IO.Err, terminal.Line(strings.Join(said, "; ")))
	return err
}

// ended says where the journal ends, if no daemon writes it and later changes were asked for.
func (t *telling) ended(ctx context.Context) (string, error) {
	at, err := t.journal.RecordedUntil(ctx)
	until := t.query.Until
	if err != nil || at.IsZero() || !until.IsZero() && !until.After(at) || t.o.Recording(ctx, t.journal.Path()) {
		return "", err
	}
	return "no daemon is running: the journal ends at " + t.stamp(at), nil
}

// reach says where nothing was found, and how far back the journal reaches where that is less than what
// was asked for.
func (t *telling) reach(ctx context.Context) (string, error) {
	since := t.query.Since
	if t.some() && since.IsZero() {
		return "", nil
	}
	oldest, err := t.journal.Oldest(ctx)
	switch {
	case err != nil:
		return "", err
	case oldest.IsZero():
		return "the journal is empty", nil
	case t.some() && !oldest.After(since):
		return "", nil
	}
	text := "the journal reaches back to " + t.stamp(oldest)
	if t.some() {
		return text + " only", nil
	}
	nothing := "nothing changed"
	if t.narrowed() {
		nothing = "no such change"
	}
	if !since.IsZero() {
		nothing += " since " + t.stamp(since)
	}
	if until := t.query.Until; !until.IsZero() {
		nothing += " before " + t.stamp(until)
	}
	if t.deep() && !t.noise {
		text += "; quiet changes were not looked at (--noise)"
	}
	return nothing + "; " + text, nil
}

// some reports whether anything was shown.
func (t *telling) some() bool {
	if len(t.lines) > 0 {
		return t.out.(*folding).gate.shown > 0
	}
	return t.shown+t.damaged > 0
}

// stamp is a time as a person says it: with the date where it is not of today.
func (t *telling) stamp(at time.Time) string {
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
