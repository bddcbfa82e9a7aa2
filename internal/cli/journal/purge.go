package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	clock "github.com/tattler-dev/tattler/internal/cli/when"
	"github.com/tattler-dev/tattler/internal/journal"
)

// PurgeOptions are the flags of purge.
type PurgeOptions struct {
	IO   *terminal.IO
	Past past.Flags
	// In is asked where Yes is not said; InTTY tells whether somebody can answer there.
	In    io.Reader
	InTTY bool

	OlderRules bool
	Until      string
	Yes        bool
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

// Purge says what it is about to remove, asks, and removes it.
func Purge(ctx context.Context, o *PurgeOptions) error {
	what, err := o.what()
	if err != nil {
		return err
	}
	path, err := o.Past.Default()
	if err == nil {
		err = past.Exists(path)
	}
	if err != nil {
		return err
	}
	j, err := journal.Open(ctx, path, journal.Options{})
	var locked *journal.LockedError
	if errors.As(err, &locked) {
		return fmt.Errorf("%w: tattler run has it open; end it first", err)
	}
	if err != nil {
		return err
	}
	defer j.Close()
	plan, err := j.PlanPurge(ctx, what)
	if err != nil {
		return err
	}
	if plan.None() {
		if o.OlderRules { // what was rewritten, or went by age, may stand in the free space of the files
			if err := o.remove(ctx, j, what, &plan); err != nil {
				return fmt.Errorf("%w; it is not finished: say it again", err)
			}
		}
		return o.nothing(j.Path())
	}
	if _, err := io.WriteString(o.IO.Err, describe(j.Path(), &plan)); err != nil {
		return err
	}
	if yes, err := o.agreed(ctx); err != nil || !yes {
		return err
	}
	if err := o.remove(ctx, j, what, &plan); err != nil {
		return fmt.Errorf("%w; it is not finished: say it again", err)
	}
	_, err = fmt.Fprintf(o.IO.Out, "%s removed for good\n", plural(plan.Changes, "change", "changes"))
	return errors.Join(err, j.Close())
}

// what is to be removed, by the flags.
func (o *PurgeOptions) what() (p journal.Purge, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OlderRules == (o.Until != "") {
		return p, capture.Usage("say one of --older-rules and --until")
	}
	if !o.Yes && !o.InTTY {
		return p, capture.Usage("there is no terminal to ask on: --yes removes without asking")
	}
	p.OtherRules = o.OlderRules
	if o.Until != "" {
		if p.Until, err = clock.Parse(o.Until, o.Now()); err != nil {
			return p, capture.Usage("--until: %v", err)
		}
	}
	return p, nil
}

func (o *PurgeOptions) nothing(path string) error {
	text := "was seen before"
	if o.OlderRules {
		text = "was recorded under other redaction rules than those that tattler run used last"
	}
	erased := ""
	if o.OlderRules {
		erased = "; the free space of its files is erased"
	}
	_, err := fmt.Fprintf(o.IO.Out, "there is nothing to remove: nothing in %s %s%s\n", path, strings.TrimSpace(text+" "+o.Until), erased)
	return err
}

// describe says what is about to go.
func describe(path string, p *journal.Purging) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This removes from %s, for good:\n", path)
	item := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if p.Changes > 0 {
		item("%s, %s of them quiet", plural(p.Changes, "change", "changes"), number(p.Quiet))
	}
	if p.Cut > 0 {
		item("what was before %s", plural(p.Cut, "change that stays: it says so then", "changes that stay: they say so then"))
	}
	if p.Dead > 0 {
		item("%s of changes that go, or are gone", plural(p.Dead, "dead letter", "dead letters"))
	}
	if n := int64(len(p.Streams)); n > 0 {
		item("the last states of %s that tattler run has not read since; if it watches", plural(n, "stream", "streams"))
		item("them, it records them anew, as at its first start: %s", names(p.Streams))
	}
	if p.Unfinished != nil {
		item("what an earlier purge removed, and did not come to erase")
	}
	for _, m := range p.Missed {
		item("sink %s has not got %s of that, and never will", terminal.Line(m.Sink), plural(m.Changes, "change", "changes"))
	}
	return b.String()
}

// names are those of streams, some of them.
func names(streams []journal.Stream) string {
	const most = 5
	var list []string
	for _, s := range streams[:min(most, len(streams))] {
		list = append(list, terminal.Line(strings.TrimSuffix(s.GroupResource+" in "+s.Namespace, " in ")))
	}
	if more := len(streams) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// agreed asks, unless that was answered before.
func (o *PurgeOptions) agreed(ctx context.Context) (bool, error) {
	if o.Yes {
		return true, nil
	}
	if _, err := fmt.Fprint(o.IO.Err, "Remove it? [y/N] "); err != nil {
		return false, err
	}
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(o.In).ReadString('\n') // what cannot be read is no yes
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return true, nil
		}
	case <-ctx.Done():
	}
	_, err := fmt.Fprintln(o.IO.Out, "nothing was removed")
	return false, err
}

func (o *PurgeOptions) remove(ctx context.Context, j *journal.Journal, what journal.Purge, plan *journal.Purging) error {
	// SQLite's name for where the file is written anew: beside it there is place, and nobody else reads.
	if os.Getenv("SQLITE_TMPDIR") == "" {
		if err := os.Setenv("SQLITE_TMPDIR", filepath.Dir(j.Path())); err != nil {
			return fmt.Errorf("choose a folder: %w", err)
		}
	}
	line := progress{w: o.IO.Err, terminal: o.IO.ErrTTY}
	defer line.clear()
	return j.Purge(ctx, what, func(removed int64) {
		if removed < plan.Changes {
			line.draw("removing: %s of %s", number(removed), number(plan.Changes))
		} else {
			line.draw("removed; writing the file anew")
		}
	})
}
