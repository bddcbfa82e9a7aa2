// Package blame is the verb that shows when each field of an object was last changed, and by which manager.
package blame

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO      *terminal.IO
	Past    past.Flags
	Types   []string
	Objects selection.Objects
	At      string
	Paths   []string
	// Output is text or json.
	Output string
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

const text = "text"

const long = `Show an object as YAML, from the journal that tattler run writes. Each line
begins with the time of its last change, the manager that wrote it, and the id
of the change, for tattler show.

"<" before a time means that the line has not changed since the journal began.
If the exact time of a change is unknown, the line shows the interval in which
the change happened, such as 10:45:01–10:45:30.
"?" stands in place of a manager that the API server does not name.

Write times as ` + when.Forms + `.`

const examples = `  tattler blame deploy/web -n shop
  tattler blame deploy/web -n shop --path 'spec.**.image'
  tattler blame configmap/settings -n shop --at 'yesterday 18:00'`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "blame TYPE/NAME",
		Short:   "Show which manager changed each field, and when",
		Long:    long,
		Example: examples,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVarP(&o.Objects.Namespaces, "namespace", "n", nil, "`namespace` of the object")
	o.Objects.AddCluster(f)
	f.StringVar(&o.At, "at", "now", "show the object as it was at this `time`")
	f.StringArrayVar(&o.Paths, "path", nil, "only lines below this `path`; repeatable")
	f.StringVarP(&o.Output, "output", "o", text, "`format`: text or json")
	complete.Words(cmd, "output", text, render.JSON)
	o.Past.AddServed(cmd)
	o.Past.CompleteObjects(cmd)
	return cmd
}

// Run shows the object.
func Run(ctx context.Context, o *Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Output != text && o.Output != render.JSON {
		return usage.Errorf("unknown output %q: use text or json", o.Output)
	}
	at, err := when.Parse(o.At, o.Now())
	if err != nil {
		return usage.Errorf("--at: %v", err)
	}
	paths, err := selection.Patterns("--path", o.Paths)
	if err != nil {
		return err
	}
	if err := o.Objects.Validate(); err != nil {
		return err
	}
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	s, err := o.find(ctx, j, at)
	if err != nil {
		return err
	}
	lines, err := j.Blame(ctx, s)
	if err != nil {
		return err
	}
	if lines = below(lines, paths); len(lines) == 0 {
		return fmt.Errorf("%s has nothing below %s", strings.Join(o.Types, " "), strings.Join(o.Paths, " or "))
	}
	if o.Output == render.JSON {
		return o.json(lines)
	}
	return o.print(lines)
}

// find returns the object that the arguments name.
func (o *Options) find(ctx context.Context, j *past.Journal, at time.Time) (*journal.State, error) {
	selected, err := j.Select(ctx, o.Types, o.Objects)
	if err != nil {
		return nil, err
	}
	what := strings.Join(o.Types, " ")
	if len(selected.Types.Names) != 1 {
		return nil, usage.Errorf("%q names no single object: say TYPE/NAME", what)
	}
	if err := j.OneCluster(ctx, what, selected.Query, at); err != nil {
		return nil, err
	}
	var found, early []journal.State
	for s, err := range j.At(ctx, selected.Query, at) {
		switch {
		case err != nil:
			return nil, err
		case s.Err != nil:
			return nil, s.Err
		case s.Presence == journal.Unknown:
			early = append(early, s)
		default:
			found = append(found, s)
		}
	}
	moment := when.Moment(at)
	switch {
	case len(found) == 1:
		return &found[0], nil
	case len(found) > 1:
		var where []string
		for _, s := range found {
			where = append(where, s.Kind.GroupResource()+" in "+s.Namespace)
		}
		return nil, usage.Errorf("%q names several objects: %s; say which with -n, or the type with its group", what, strings.Join(where, ", "))
	case len(early) > 0:
		return nil, fmt.Errorf("the journal does not reach back to %s for %s: it was first recorded at %s", moment, what, when.Moment(early[0].From))
	}
	return nil, fmt.Errorf("there was no %s at %s", what, moment)
}

// below returns the lines that paths select, with the lines above them that name them; all without paths.
func below(lines []history.Line, paths []diff.Pattern) []history.Line {
	if len(paths) == 0 {
		return lines
	}
	keep := make([]bool, len(lines))
	var above []int // the lines that name the current one's parents
	for i := range lines {
		for len(above) > 0 && lines[above[len(above)-1]].Depth >= lines[i].Depth {
			above = above[:len(above)-1]
		}
		path := lines[i].Path()
		if keep[i] = slices.ContainsFunc(paths, func(p diff.Pattern) bool { return p.Covers(path) }); keep[i] {
			for _, k := range slices.Backward(above) {
				if keep[k] { // as are those above it
					break
				}
				keep[k] = true
			}
		}
		above = append(above, i)
	}
	var some []history.Line
	for i, l := range lines {
		if keep[i] {
			some = append(some, l)
		}
	}
	return some
}

func (o *Options) print(lines []history.Line) error {
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	today := o.Now().Local()
	for _, l := range lines {
		at, id := "", ""
		if l.Blame != nil {
			at = times(l.Blame, today)
			if l.Blame.ID != "" {
				id = l.Blame.ID[:8]
			}
		}
		manager := ""
		if l.Blame != nil {
			manager = l.Blame.Manager
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t| %s\n", at, terminal.Line(manager), id, l.Text)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("print lines: %w", err)
	}
	_, err := o.IO.Out.Write(b.Bytes())
	return err
}

// times is when a line was changed: a time, or the interval in which it happened. The end of an interval has a date only if
// that is another one.
func times(b *history.Blame, today time.Time) string {
	at := moment(b.Time, today)
	switch {
	case b.Before:
		return "<" + at
	case b.Since.IsZero():
		return at
	}
	from := moment(b.Since, today)
	if from == at {
		return at
	}
	date, _, _ := strings.Cut(from, " ")
	return from + "–" + strings.TrimPrefix(at, date+" ")
}

// moment is a time of today, or a date.
func moment(t, today time.Time) string {
	t = t.Local()
	if t.Year() == today.Year() && t.YearDay() == today.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// jsonLine is a line of the JSON form.
type jsonLine struct {
	Path    string     `json:"path"`
	Text    string     `json:"text"`
	Since   *time.Time `json:"since,omitempty"` // the change happened between Since and Time
	Time    *time.Time `json:"time,omitempty"`
	Before  bool       `json:"before,omitempty"`
	Manager string     `json:"manager,omitempty"`
	Change  string     `json:"change,omitempty"`
}

func (o *Options) json(lines []history.Line) error {
	out := []jsonLine{}
	for _, l := range lines {
		j := jsonLine{Path: l.Path().String(), Text: l.Text}
		if b := l.Blame; b != nil {
			j.Time, j.Before, j.Manager, j.Change = &b.Time, b.Before, b.Manager, b.ID
			if !b.Since.IsZero() {
				j.Since = &b.Since
			}
		}
		out = append(out, j)
	}
	return render.WriteJSON(o.IO.Out, out)
}
