// Package diff is the verb that shows the net difference between two moments.
package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO   *terminal.IO
	Past past.Flags
	// Types are TYPE[,TYPE…] [NAME…] or TYPE/NAME….
	Types        []string
	Objects      selection.Objects
	Since, Until string
	Output       string
	Full, Noise  bool
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

// text is the form of output besides those of render.
const text = "text"

// ErrDiffers is the error of Run where something differs.
var ErrDiffers = errors.New("there are differences")

const long = `Show the net difference between two times, from the journal that tattler run
writes. A change that was undone in between does not show. Each field is shown
with the manager that owns it at the later time. An object that was created in
between is shown with the time of its creation and its first lines; one that was
deleted, or that a controller owns, is only named. --full shows whole objects.
An object that was made again under its name is both deleted and created.

Write times as ` + when.Forms + `.

The exit codes are those of kubectl diff: 0 if nothing differs, 1 if something
does, 2 or more if the command failed.`

const examples = `  tattler diff deploy/web -n shop --since 10:00
  tattler diff -n shop --since 10:00 --until 10:30
  tattler diff configmaps --since yesterday`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "diff [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Show the difference between two times",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Since, "since", "1h", "the earlier `time`")
	f.StringVar(&o.Until, "until", "now", "the later `time`")
	o.Objects.AddStates(f)
	f.StringVarP(&o.Output, "output", "o", text, "`format`: text, json or yaml")
	f.BoolVar(&o.Full, "full", false, "show long values, and created and deleted objects, in full")
	f.BoolVar(&o.Noise, "noise", false, "also show quiet fields")
	complete.Words(cmd, "output", text, render.JSON, render.YAML)
	o.Past.AddServed(cmd)
	o.Past.CompleteObjects(cmd)
	return cmd
}

// times reads the flags.
func (o *Options) times() (since, until time.Time, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if !slices.Contains([]string{text, render.JSON, render.YAML}, o.Output) {
		return since, until, usage.Errorf("unknown output %q: use text, json or yaml", o.Output)
	}
	if err := o.Objects.Validate(); err != nil {
		return since, until, err
	}
	if since, err = when.Parse(o.Since, o.Now()); err != nil {
		return since, until, usage.Errorf("--since: %v", err)
	}
	if until, err = when.ParseEnd(o.Until, o.Now()); err == nil && until.After(o.Now()) {
		until, err = when.Parse(o.Until, o.Now())
	}
	if err != nil {
		return since, until, usage.Errorf("--until: %v", err)
	}
	if !since.Before(until) {
		return since, until, usage.Errorf("--since is not before --until")
	}
	return since, until, nil
}

// Run shows the difference. It returns ErrDiffers where there is one.
func Run(ctx context.Context, o *Options) error {
	since, until, err := o.times()
	if err != nil {
		return err
	}
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	all, unknown, err := o.read(ctx, j, since, until)
	if err != nil {
		return err
	}
	if unknown.n > 0 {
		o.note("%s first recorded after %s, at %s or later; the state before is not known",
			terminal.Count(unknown.n, "object")+was(unknown.n), when.Moment(since), when.Moment(unknown.first))
	}
	if unknown.purged > 0 {
		o.note("%s left out: the state at one of the two times was purged", terminal.Count(unknown.purged, "object")+was(unknown.purged))
	}
	if oldest, err := j.Oldest(ctx); err != nil {
		return err
	} else if since.Before(oldest) && unknown.n == 0 {
		o.note("the journal reaches back to %s only", when.Moment(oldest))
	}
	if ended, err := j.Ended(ctx); err != nil {
		return err
	} else if !ended.IsZero() && ended.Before(until) && o.Now().Sub(ended) > time.Minute {
		o.note("nothing was recorded after %s", when.Moment(ended))
	}
	if len(all) == 0 {
		return nil
	}
	several, err := j.Within(ctx, o.Objects.Clusters)
	if err != nil {
		return err
	}
	if err := o.print(all, j.Cluster(), len(several) > 1); err != nil {
		return err
	}
	return ErrDiffers
}

// unknown counts objects whose earlier state is not known, and those of which a state was purged.
type unknown struct {
	n      int
	first  time.Time
	purged int
}

// add counts an object that was first recorded at a time.
func (u *unknown) add(from time.Time) {
	if u.n++; u.first.IsZero() || from.Before(u.first) {
		u.first = from
	}
}

func (o *Options) read(ctx context.Context, j *past.Journal, since, until time.Time) (all []change.Change, u unknown, err error) {
	selected, err := j.Select(ctx, o.Types, o.Objects)
	if err != nil {
		return nil, u, err
	}
	q := selected.Query
	q.Since, q.Until = since, until
	if len(q.Names) > 0 || o.Output != text {
		if err := j.OneCluster(ctx, strings.Join(o.Types, " "), q, since, until); err != nil {
			return nil, u, err
		}
	}
	for both, err := range j.Between(ctx, q) {
		if err != nil {
			return nil, u, err
		}
		before, after := &both[0], &both[1]
		for _, s := range both {
			if s.Err != nil && !errors.Is(s.Err, journal.ErrPurged) {
				return nil, u, s.Err
			}
		}
		if before.Err != nil || after.Err != nil {
			u.purged++
			continue
		}
		if before.Presence == journal.Unknown || after.Presence == journal.Unknown {
			u.add(before.From)
			continue
		}
		if before.From.After(since) {
			u.add(before.From)
		}
		c, err := j.Net(ctx, before, after)
		switch {
		case err != nil:
			return nil, u, err
		case c.Op == "", c.Op.Differs() && (len(c.Fields) == 0 || c.Quiet && !o.Noise):
			continue
		case !selected.MatchesLabels(&c):
			continue
		}
		all = append(all, c)
	}
	return all, u, nil
}

func (o *Options) note(format string, args ...any) {
	fmt.Fprintln(o.IO.Err, terminal.Line(fmt.Sprintf(format, args...)))
}

func (o *Options) print(all []change.Change, cluster string, several bool) error {
	if o.Output != text {
		return o.data(all, cluster)
	}
	width := 0
	if o.IO.OutTTY && !o.Full {
		width = o.IO.Width()
	}
	t := render.New(render.Options{
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Today: o.Now, Color: o.IO.Color, Width: width,
		Namespaces: true, Full: o.Full, Whole: o.Full, Noise: o.Noise, Flat: true, Cluster: cluster, Clusters: several,
	})
	for _, c := range all {
		if err := t.Change(c.At, c); err != nil {
			return err
		}
	}
	return t.Flush(o.Now())
}

// data prints what differs for programs: the data of an event for each object. These are no events and have no ids:
// nothing happened that they stand for.
func (o *Options) data(all []change.Change, cluster string) error {
	list := []event.Data{}
	for i := range all {
		d := change.Event(cluster, &all[i]).Data
		if !o.Noise {
			d.Changes = slices.DeleteFunc(d.Changes, func(c event.Change) bool { return c.Quiet })
		}
		list = append(list, d)
	}
	if o.Output == render.JSON {
		return render.WriteJSON(o.IO.Out, list)
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		return fmt.Errorf("print differences: %w", err)
	}
	_, err = o.IO.Out.Write(text)
	return err
}

// was is the verb for a number of things.
func was(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
}
