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

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/usage"
	clock "github.com/tattler-dev/tattler/internal/when"
)

// PurgeOptions are the flags of purge.
type PurgeOptions struct {
	IO   *terminal.IO
	Past past.Flags
	// In is read for the answer unless Yes is set; InTTY reports whether it is a terminal.
	In    io.Reader
	InTTY bool

	OlderRules bool
	Until      string
	Cluster    string
	Yes        bool
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

// Purge describes what it would remove, asks, and removes it.
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
	if wrong := new(journal.UnknownClusterError); errors.As(err, &wrong) {
		return usage.Errorf("--cluster: %v", wrong)
	}
	if err != nil {
		return err
	}
	if plan.None() {
		if o.OlderRules { // rewritten states and removed changes may remain in free space
			if err := o.remove(ctx, j, what, &plan); err != nil {
				return fmt.Errorf("%w; the purge is not finished: run it again", err)
			}
		}
		return o.nothing(j.Path())
	}
	if _, err := io.WriteString(o.IO.Err, describe(j.Path(), o.Cluster, &plan)); err != nil {
		return err
	}
	if yes, err := o.agreed(ctx); err != nil || !yes {
		return err
	}
	if err := o.remove(ctx, j, what, &plan); err != nil {
		return fmt.Errorf("%w; the purge is not finished: run it again", err)
	}
	_, err = fmt.Fprintf(o.IO.Out, "%s removed for good\n", plural(plan.Changes, "change", "changes"))
	return errors.Join(err, j.Close())
}

// what returns what the flags select.
func (o *PurgeOptions) what() (p journal.Purge, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OlderRules == (o.Until != "") {
		return p, usage.Errorf("use either --older-rules or --until")
	}
	if !o.Yes && !o.InTTY {
		return p, usage.Errorf("stdin is not a terminal, so nothing can be confirmed: --yes removes without asking")
	}
	if o.OlderRules && o.Cluster != "" {
		return p, usage.Errorf("--cluster needs --until: redaction rules hold for all clusters")
	}
	p.OtherRules, p.Cluster = o.OlderRules, o.Cluster
	if o.Until != "" {
		if p.Until, err = clock.Parse(o.Until, o.Now()); err != nil {
			return p, usage.Errorf("--until: %v", err)
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
		erased = "; the free space of its files was erased"
	}
	of := path
	if o.Cluster != "" {
		of = fmt.Sprintf("%s of cluster %s", path, terminal.Line(o.Cluster))
	}
	_, err := fmt.Fprintf(o.IO.Out, "there is nothing to remove: nothing in %s %s%s\n", of, strings.TrimSpace(text+" "+o.Until), erased)
	return err
}

// describe lists what is about to be removed.
func describe(path, cluster string, p *journal.Purging) string {
	var b strings.Builder
	if cluster != "" {
		path += ", of cluster " + terminal.Line(cluster)
	}
	fmt.Fprintf(&b, "This removes from %s, for good:\n", path)
	item := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if p.Changes > 0 {
		item("%s, %s of them quiet", plural(p.Changes, "change", "changes"), number(p.Quiet))
	}
	if p.Cut > 0 {
		item("the state before %s", plural(p.Cut, "change that stays, which will say so", "changes that stay, which will say so"))
	}
	if p.Dead > 0 {
		item("%s of changes that are removed now or were before", plural(p.Dead, "dead letter", "dead letters"))
	}
	if n := int64(len(p.Streams)); n > 0 {
		item("the last states of %s that tattler run has not read since; if it watches", plural(n, "stream", "streams"))
		item("them, it records them again, as at its first start: %s", names(p.Streams))
	}
	if p.Unfinished != nil {
		item("the remains of an earlier purge that was interrupted")
	}
	for _, m := range p.Missed {
		item("sink %s has not got %s of these, and never will", terminal.Line(m.Sink), plural(m.Changes, "change", "changes"))
	}
	return b.String()
}

// names lists some of the streams.
func names(streams []journal.Stream) string {
	const most = 5
	var list []string
	for _, s := range streams[:min(most, len(streams))] {
		list = append(list, terminal.Line(strings.TrimSuffix(of(s.Cluster, s.GroupResource)+" in "+s.Namespace, " in ")))
	}
	if more := len(streams) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// agreed asks for confirmation unless --yes is set.
func (o *PurgeOptions) agreed(ctx context.Context) (bool, error) {
	if o.Yes {
		return true, nil
	}
	if _, err := fmt.Fprint(o.IO.Err, "Remove it? [y/N] "); err != nil {
		return false, err
	}
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(o.In).ReadString('\n') // a read error is not a yes
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
	// SQLite's variable for the directory of the vacuum's copy: the journal's has room and is private.
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
			line.draw("removed; rewriting the file")
		}
	})
}
