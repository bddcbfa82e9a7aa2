// Package get is the verb that shows objects as they were.
package get

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
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
	Types             []string
	Objects           selection.Objects
	At                string
	Output            string
	Clean, KeepHidden bool
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

// The forms of output besides those of render.
const (
	table = "table"
	name  = "name"
)

const long = `Show objects as they were at a time, from the journal that tattler run writes.
The command contacts the cluster only with --in-cluster.

Write times as ` + when.Forms + `.
If the exact time of a change is unknown, and --at is within the interval in
which the change happened, the object is shown as it was before that change, and
a line on stderr says so.

LAST CHANGE is the interval in which the last change happened if its exact time
is unknown, and "before" a time for an object that has not changed since the
journal began.

--clean leaves out what the API server and its controllers set, so that kubectl
apply accepts the object. It refuses objects with hidden values, because a hash
cannot replace a password; --keep-hidden writes such objects nevertheless.`

const examples = `  tattler get deploy/web -n shop --at 10:00 -o yaml
  tattler get pods -n shop --at 'yesterday 10:42'
  tattler get deploy/web -n shop --at 10:00 --clean | kubectl apply -f -`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "get TYPE[,TYPE...] [NAME...] | TYPE/NAME...",
		Short:   "Show objects as they were",
		Long:    long,
		Example: examples,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Types = args
			if o.Clean && !cmd.Flags().Changed("output") {
				o.Output = render.YAML
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.At, "at", "now", "show objects as they were at this `time`")
	o.Objects.AddStates(f)
	f.StringVarP(&o.Output, "output", "o", table, "`format`: table, yaml, json or name")
	f.BoolVar(&o.Clean, "clean", false, "leave out what the server sets; implies -o yaml")
	f.BoolVar(&o.KeepHidden, "keep-hidden", false, "with --clean: write objects with hidden values, too")
	complete.Words(cmd, "output", table, render.YAML, render.JSON, name)
	o.Past.AddServed(cmd)
	o.Past.CompleteObjects(cmd)
	return cmd
}

// found is an object as it was.
type found struct {
	journal.State
	object map[string]any
	// cluster is the name of the cluster, if objects of several are listed.
	cluster string
}

// Run shows what was asked for.
func Run(ctx context.Context, o *Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	at, err := when.Parse(o.At, o.Now())
	switch {
	case err != nil:
		return usage.Errorf("--at: %v", err)
	case !slices.Contains([]string{table, name, render.JSON, render.YAML}, o.Output):
		return usage.Errorf("unknown output %q: use table, yaml, json or name", o.Output)
	case o.KeepHidden && !o.Clean:
		return usage.Errorf("--keep-hidden needs --clean")
	case o.Clean && o.Output != render.YAML && o.Output != render.JSON:
		return usage.Errorf("--clean needs -o yaml or -o json")
	}
	if err := o.Objects.Validate(); err != nil {
		return err
	}
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	all, err := o.read(ctx, j, at)
	if err != nil && len(all) == 0 {
		return err
	}
	unread := err
	switch {
	case o.Clean:
		if err := clean(all, o.KeepHidden); err != nil {
			return err
		}
	case o.Output == render.JSON || o.Output == render.YAML:
		o.noteHidden(all)
	}
	return errors.Join(o.print(all, at), unread)
}

// read returns the objects, and an error if one is damaged. It reports on stderr what is uncertain.
func (o *Options) read(ctx context.Context, j *past.Journal, at time.Time) ([]found, error) {
	selected, err := j.Select(ctx, o.Types, o.Objects)
	if err != nil {
		return nil, err
	}
	if len(selected.Types.Names) > 0 || o.Output != table {
		if err := j.OneCluster(ctx, strings.Join(o.Types, " "), selected.Query, at); err != nil {
			return nil, err
		}
	}
	clusters, err := j.Within(ctx, o.Objects.Clusters)
	if err != nil {
		return nil, err
	}
	until, err := j.Ended(ctx)
	if err != nil {
		return nil, err
	}
	var all []found
	var early []journal.State // of which the journal does not know so much
	var damaged error
	purged := 0
	for s, err := range j.At(ctx, selected.Query, at) {
		switch {
		case err != nil:
			return nil, err
		case errors.Is(s.Err, journal.ErrPurged):
			o.note("%s: its state at that time was purged", subject(&s))
			purged++
			continue
		case s.Err != nil: // the others can be read
			damaged = cmp.Or(damaged, fmt.Errorf("%s: %w", subject(&s), s.Err))
			continue
		case s.Presence == journal.Unknown:
			early = append(early, s)
			continue
		}
		object, err := jsonmap.Decode(s.JSON)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", subject(&s), err)
		}
		if !selected.Labelled(object) {
			continue
		}
		if s.Next != nil {
			from, to := s.Next.Span()
			o.note("%s changed between %s and %s; this is how it was before that", subject(&s), when.Moment(from), when.Moment(to))
		}
		one := found{State: s, object: object}
		if len(clusters) > 1 {
			one.cluster = j.ClusterOf(s.Kind)
		}
		all = append(all, one)
	}
	if len(all) > 0 && !until.IsZero() && until.Before(at) && o.Now().Sub(until) > time.Minute {
		o.note("nothing was recorded after %s", when.Moment(until))
	}
	switch {
	case len(early) == 1:
		o.note("%s was first recorded at %s; its state before is not known", subject(&early[0]), when.Moment(early[0].From))
	case len(early) > 1:
		first := slices.MinFunc(early, func(a, b journal.State) int { return a.From.Compare(b.From) })
		o.note("%d objects were first recorded at %s or later; their states before are not known", len(early), when.Moment(first.From))
	}
	if len(all) > 0 || damaged != nil {
		return all, damaged
	}
	unseen, err := j.Unseen(ctx, selected.Query.Namespaces)
	if err != nil {
		return nil, err
	}
	for _, ns := range unseen {
		o.note("the journal has nothing in namespace %q", ns)
	}
	what := strings.Join(o.Types, " ")
	if len(early)+purged > 0 {
		return nil, fmt.Errorf("the journal does not reach back to %s for %s", when.Moment(at), what)
	}
	if len(selected.Types.Names) > 0 {
		return nil, fmt.Errorf("there was no %s at %s", what, when.Moment(at))
	}
	return nil, nil
}

func (o *Options) note(format string, args ...any) {
	fmt.Fprintln(o.IO.Err, terminal.Line(fmt.Sprintf(format, args...)))
}

func subject(s *journal.State) string {
	text := s.Kind.Resource + "/" + s.Name
	if s.Namespace != "" {
		text += " in " + s.Namespace
	}
	return text
}

// noteHidden says which values are hidden.
func (o *Options) noteHidden(all []found) {
	n := 0
	for i := range all {
		n += len(hidden(all[i].object))
	}
	if n > 0 {
		o.note("%s: a hash is shown instead", terminal.Count(n, "hidden value"))
	}
}

func (o *Options) print(all []found, at time.Time) error {
	var b bytes.Buffer
	var err error
	switch o.Output {
	case name:
		for i := range all {
			fmt.Fprintln(&b, terminal.Line(qualified(&all[i].State)+"/"+all[i].Name))
		}
	case table:
		if len(all) == 0 {
			o.note("there were none at %s", when.Moment(at))
			return nil
		}
		err = printTable(&b, all, at)
	case render.JSON:
		err = render.WriteJSON(&b, value(all, len(o.Types) == 1 && strings.Contains(o.Types[0], "/")))
	default:
		for i := range all {
			if i > 0 {
				b.WriteString("---\n")
			}
			for _, line := range diff.WholeYAML(all[i].object) {
				b.WriteString(line)
				b.WriteByte('\n')
			}
		}
	}
	if err != nil {
		return fmt.Errorf("print objects: %w", err)
	}
	_, err = o.IO.Out.Write(b.Bytes())
	return err
}

// value is what JSON says: the one object that was named, or a list of objects.
func value(all []found, one bool) any {
	if one && len(all) == 1 {
		return all[0].object
	}
	items := []any{}
	for i := range all {
		items = append(items, all[i].object)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// qualified is the kind as kubectl's -o name has it.
func qualified(s *journal.State) string {
	kind := strings.ToLower(s.Kind.Kind)
	if s.Kind.Group != "" {
		kind += "." + s.Kind.Group
	}
	return kind
}

// lastChange describes the change that led to a state: when it happened, who wrote it, and its id. Of an object that existed
// when it was first seen, only a time is known before which it happened.
func lastChange(s *journal.State) (at, manager, id string) {
	switch last := s.Last; {
	case last == nil && s.From.IsZero():
		return "?", "", ""
	case last == nil:
		return "before " + when.Moment(s.From), "", ""
	case last.Op == event.Snapshot:
		return "before " + when.Moment(last.At), "", last.ID[:8]
	default:
		return when.Span(last.Span()), last.Manager, last.ID[:8]
	}
}

func printTable(w io.Writer, all []found, at time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	several := slices.ContainsFunc(all, func(f found) bool { return f.cluster != "" })
	line := func(cluster string, cells ...string) {
		if several {
			cells = slices.Insert(cells, 0, cluster)
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	line("CLUSTER", "NAMESPACE", "NAME", "AGE", "LAST CHANGE", "MANAGER", "CHANGE")
	for i := range all {
		f := &all[i]
		age := "?"
		if t := jsonmap.Time(f.object, "metadata", "creationTimestamp"); !t.IsZero() {
			age = render.Duration(at.Sub(t).Truncate(time.Second))
		}
		changed, manager, id := lastChange(&f.State)
		line(terminal.Line(f.cluster), terminal.Line(f.Namespace), terminal.Line(qualified(&f.State)+"/"+f.Name), age, changed, terminal.Line(manager), id)
	}
	return tw.Flush()
}
