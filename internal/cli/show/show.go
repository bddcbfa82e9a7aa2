// Package show is the verb that shows one complete change.
package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO     *terminal.IO
	Past   past.Flags
	ID     string
	Output string
}

const long = `Show one complete change, with quiet fields and long values. If the change
created or deleted an object, the whole object is shown.

CHANGE is the id of a change or a prefix of the id: tattler log -o oneline
prints ids.`

// NewCommand returns the verb.
func NewCommand(streams *terminal.IO) *cobra.Command {
	o := &Options{IO: streams}
	cmd := &cobra.Command{
		Use:   "show CHANGE",
		Short: "Show one complete change",
		Long:  long,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ID = args[0]
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.Output, "output", "o", "text", "`format`: text, json or yaml (an event)")
	complete.Words(cmd, "output", "text", render.JSON, render.YAML)
	o.Past.AddServed(cmd)
	o.Past.CompleteChanges(cmd)
	return cmd
}

// Run shows the change.
func Run(ctx context.Context, o *Options) error {
	if o.Output != "text" && o.Output != render.JSON && o.Output != render.YAML {
		return usage.Errorf("unknown output %q: use text, json or yaml", o.Output)
	}
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	e, err := j.ByID(ctx, o.ID)
	var several *journal.AmbiguousError
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return missing(o.ID)
	case errors.As(err, &several):
		return &usage.Error{Text: several.Error()}
	case err != nil:
		return err
	}
	cluster := ""
	switch clusters, err := j.Clusters(ctx); {
	case err != nil:
		return err
	case len(clusters) > 1:
		cluster = j.ClusterOf(e.Kind)
	}
	c, err := j.Change(ctx, &e)
	if errors.Is(err, journal.ErrNotFound) {
		return missing(o.ID)
	}
	if o.Output != "text" {
		if err != nil {
			return err
		}
		out, err := render.NewEvents(render.EventsOptions{Out: o.IO.Out, Format: o.Output, Cluster: j.Cluster(), Noise: true})
		if err != nil {
			return err
		}
		return out.Change(c)
	}
	if _, err := io.WriteString(o.IO.Out, head(e.ID, cluster, &c)); err != nil {
		return err
	}
	if err != nil {
		return err // the known parts have been printed
	}
	t := render.New(render.Options{ // without a width: nothing is cut
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Today: time.Now, Color: o.IO.Color,
		Namespaces: true, Full: true, Whole: true, Noise: true, Flat: true,
	})
	if err := t.Change(c.At, c); err != nil {
		return err
	}
	return t.Flush(c.At)
}

func missing(id string) error {
	return fmt.Errorf("the journal has no change %q; tattler log -o oneline prints ids", id)
}

// head returns the details that a line of log omits.
func head(id, cluster string, c *change.Change) string {
	var b strings.Builder
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s %s\n", what, terminal.Line(text))
		}
	}
	line("change", id)
	line("what", string(c.Op))
	line("cluster", cluster)
	switch c.Op {
	case event.Absent:
	case event.Gap:
		line("kind", c.Kind.GroupResource())
		line("namespace", c.Namespace)
	default:
		line("object", c.Subject())
		line("uid", c.UID)
	}
	if c.Owner != nil {
		line("owner", c.Owner.Kind+"/"+c.Owner.Name)
	}
	line("version", c.ResourceVersion)
	line("manager", c.Manager)
	if c.Op == event.Snapshot { // its time is that of the creation
		line("happened", "before "+c.At.Local().Format(time.RFC3339))
	} else {
		line("happened", between(c.Span()))
	}
	line("seen", c.At.Local().Format(time.RFC3339))
	switch {
	case c.Op == event.Converted:
		line("quiet", "yes: the API server serves the object in another form; no client wrote it")
	case c.Quiet:
		line("quiet", "yes: every changed field is quiet")
	}
	b.WriteString("\n")
	return b.String()
}

// between formats a time or an interval.
func between(from, to time.Time) string {
	text := to.Local().Format(time.RFC3339)
	if !from.Equal(to) {
		text = "between " + from.Local().Format(time.RFC3339) + " and " + text
	}
	return text
}
