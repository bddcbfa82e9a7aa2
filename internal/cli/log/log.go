// Package log is the verb that tells what changed, from the journal.
package log

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/cli/when"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/where"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO   *terminal.IO
	Past past.Flags
	// Types are TYPE[,TYPE…] [NAME…] or TYPE/NAME….
	Types      []string
	Namespaces []string
	All        bool

	Since, Until  string
	Ops, Managers []string
	Paths         []string
	Where         string

	Limit             int
	Output            string
	Flat, Full, Noise bool
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

const long = `Tell what changed, from the journal that tattler run writes, the newest last. The
cluster is not asked.

TYPE is a plural, singular, kind or short name, as of watch; without any, every
kind is told. Changes that belong to a rollout are folded into one line, as in
watch; --flat tells each. Times are ` + when.Forms + `.`

const examples = `  tattler log                              the last 50 changes
  tattler log --since 10:40 --until 10:45  what changed at 10:42?
  tattler log deploy/web -n shop           one Deployment
  tattler log deploy/web --path 'spec.**.image'
                                           who changed the image, and when?
  tattler log --op deleted --since yesterday
  tattler log -o json | jq .data           one CloudEvents event per line`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "log [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Tell what changed",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVarP(&o.Namespaces, "namespace", "n", nil, "`names` a,b or globs; default: all")
	f.BoolVarP(&o.All, "all-namespaces", "A", false, "all, as without -n")
	f.StringVar(&o.Since, "since", "", "from this `time` on")
	f.StringVar(&o.Until, "until", "", "before this `time`")
	f.StringSliceVar(&o.Ops, "op", nil, "`operations`: created,updated,deleted,entered,left,gap,snapshot")
	f.StringSliceVar(&o.Managers, "manager", nil, "only what these `managers` wrote")
	f.StringArrayVar(&o.Paths, "path", nil, "only changes below this `path`; repeatable")
	f.StringVar(&o.Where, "where", "", "only where this `expression` (CEL) is true")
	f.IntVar(&o.Limit, "limit", 50, "tell this `number` of changes, the last ones; 0: all")
	f.StringVarP(&o.Output, "output", "o", "text", "`format`: text, json or yaml (events)")
	f.BoolVar(&o.Flat, "flat", false, "tell each change of a rollout")
	f.BoolVar(&o.Full, "full", false, "show long values and new objects whole")
	f.BoolVar(&o.Noise, "noise", false, "show quiet fields, too")
	o.Past.Add(f)
	return cmd
}

// Run tells what was asked for.
func Run(ctx context.Context, o *Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	s, err := o.selection()
	if err != nil {
		return err
	}
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := s.resolve(ctx, j, o.Types); err != nil {
		return err
	}
	out, err := o.printer(j.Cluster())
	if err != nil {
		return err
	}
	changes, quiet, err := s.newest(ctx, j, o.Limit)
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(changes) {
		if err := out.Change(c.At, c); err != nil {
			return err
		}
	}
	if err := out.Flush(o.Now()); err != nil {
		return err
	}
	return o.sumUp(len(changes), quiet, s)
}

// sumUp says on stderr what is not shown.
func (o *Options) sumUp(shown, quiet int, s *selection) error {
	var said []string
	if shown == 0 {
		said = append(said, "no changes")
	}
	if o.Limit > 0 && shown == o.Limit {
		said = append(said, fmt.Sprintf("the last %d; --limit tells more", o.Limit))
	}
	if quiet > 0 && !o.Noise {
		said = append(said, fmt.Sprintf("%d quiet changes not shown (--noise)", quiet))
	}
	if s.unjudged > 0 {
		said = append(said, fmt.Sprintf("--where could not judge %d changes, such as %v", s.unjudged, s.lastErr))
	}
	if len(said) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(o.IO.Err, strings.Join(said, "; "))
	return err
}

// printer shows changes: as text, or as events.
type printer interface {
	Change(now time.Time, c change.Change) error
	Flush(now time.Time) error
}

func (o *Options) printer(cluster string) (printer, error) {
	switch o.Output {
	case "text":
		return render.New(render.Options{
			Out: o.IO.Out, Terminal: o.IO.OutTTY, Color: o.IO.Color, Width: o.IO.Width(),
			Namespaces: true, Full: o.Full, Noise: o.Noise, Status: o.Flat || len(o.Paths) > 0 || o.Where != "",
		}), nil
	case render.JSON, render.YAML:
		e, err := render.NewEvents(render.EventsOptions{Out: o.IO.Out, Format: o.Output, Cluster: cluster, Noise: o.Noise})
		return events{e}, err
	}
	return nil, capture.Usage("unknown output %q: say text, json or yaml", o.Output)
}

type events struct{ *render.Events }

func (e events) Change(_ time.Time, c change.Change) error { return e.Events.Change(c) }
func (events) Flush(time.Time) error                       { return nil }

// selection is which changes are told.
type selection struct {
	query      journal.Query
	namespaces []string // globs
	paths      []diff.Pattern
	where      *where.Expr
	names      []string
	noise      bool

	unjudged int   // changes for which where failed
	lastErr  error // of where
}

func (o *Options) selection() (s *selection, err error) {
	s = &selection{noise: o.Noise}
	now := o.Now()
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", o.Since, &s.query.Since}, {"--until", o.Until, &s.query.Until}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = when.Parse(t.text, now); err != nil {
			return nil, capture.Usage("%s: %v", t.flag, err)
		}
	}
	if !s.query.Until.IsZero() && !s.query.Since.Before(s.query.Until) {
		return nil, capture.Usage("--since is not before --until")
	}
	for _, op := range o.Ops {
		known := []event.Op{event.Snapshot, event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Gap}
		if !slices.Contains(known, event.Op(op)) {
			return nil, capture.Usage("--op: there is no operation %q: say created, updated, deleted, entered, left, gap or snapshot", op)
		}
		s.query.Ops = append(s.query.Ops, event.Op(op))
		s.query.Snapshots = s.query.Snapshots || op == string(event.Snapshot)
	}
	s.query.Managers = o.Managers
	s.query.Quiet = true // they are counted
	for _, p := range o.Paths {
		pattern, err := diff.ParsePattern(p)
		if err != nil {
			return nil, capture.Usage("--path: %v", err)
		}
		s.paths = append(s.paths, pattern)
	}
	if o.Where != "" {
		if s.where, err = where.Compile(o.Where); err != nil {
			return nil, capture.Usage("--where: %v", err)
		}
	}
	if o.Limit < 0 {
		return nil, capture.Usage("--limit cannot be negative")
	}
	if o.All && len(o.Namespaces) > 0 {
		return nil, capture.Usage("-A and -n exclude each other")
	}
	for _, n := range o.Namespaces {
		s.namespaces = append(s.namespaces, strings.Split(n, ",")...)
	}
	for _, n := range s.namespaces {
		if _, err := path.Match(n, ""); err != nil || n == "" {
			return nil, capture.Usage("-n: %q is neither a name nor a glob", n)
		}
	}
	return s, nil
}

// resolve finds the kinds that are asked for among those that the journal has.
func (s *selection) resolve(ctx context.Context, j *past.Journal, args []string) error {
	if len(args) == 0 {
		return nil
	}
	types, err := j.Types(ctx, args)
	if err != nil {
		return err
	}
	s.query.Resources, s.names = types.Resources, types.Names
	if len(s.names) == 1 {
		s.query.Name = s.names[0]
	}
	return nil
}

// newest returns the last changes that are selected, the newest first, and how many quiet ones lie
// between them.
func (s *selection) newest(ctx context.Context, j *past.Journal, limit int) (out []change.Change, quiet int, err error) {
	for e, err := range j.Rows(ctx, s.query) {
		if err != nil {
			return nil, 0, err
		}
		if !s.takes(&e) {
			continue
		}
		if e.Quiet && !s.noise {
			quiet++
			continue
		}
		c, err := j.Tell(ctx, &e)
		if err != nil {
			return nil, 0, err
		}
		if !s.matches(j.Cluster(), &c) {
			continue
		}
		if out = append(out, c); len(out) == limit {
			break
		}
	}
	return out, quiet, nil
}

// takes looks at what needs no object.
func (s *selection) takes(e *journal.Entry) bool {
	if len(s.names) > 0 && !slices.Contains(s.names, e.Name) {
		return false
	}
	return len(s.namespaces) == 0 || slices.ContainsFunc(s.namespaces, func(glob string) bool {
		ok, err := path.Match(glob, e.Namespace)
		return err == nil && ok
	})
}

// matches looks at the objects. A change for which the expression fails, such as for one without the
// field that it reads, does not match, and is counted.
func (s *selection) matches(cluster string, c *change.Change) bool {
	if len(s.paths) > 0 && !c.Touches(s.paths) {
		return false
	}
	if s.where == nil {
		return true
	}
	d := change.Event(cluster, c).Data
	d.Before, d.After = c.Before, c.After
	ok, err := s.where.Match(&d)
	if err != nil {
		s.unjudged++
		s.lastErr = fmt.Errorf("%s: %w", c.Subject(), err)
	}
	return ok && err == nil
}
