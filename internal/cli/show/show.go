// Package show is the verb that tells one change whole.
package show

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO     *terminal.IO
	Past   past.Flags
	ID     string
	Output string
}

const long = `Tell one change whole: quiet fields, long values and new objects included.

CHANGE is the id of an event, or how it begins: tattler log -o json tells ids.`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:   "show CHANGE",
		Short: "Tell one change whole",
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
	o.Past.Add(f)
	return cmd
}

// Run tells the change.
func Run(ctx context.Context, o *Options) error {
	if o.Output != "text" && o.Output != render.JSON && o.Output != render.YAML {
		return &capture.UsageError{Text: fmt.Sprintf("unknown output %q: say text, json or yaml", o.Output)}
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
		return fmt.Errorf("the journal has no change %q (any more)", o.ID)
	case errors.As(err, &several):
		return &capture.UsageError{Text: several.Error()}
	case err != nil:
		return err
	}
	c, err := j.Tell(ctx, &e)
	if err != nil {
		return err
	}
	if o.Output != "text" {
		out, err := render.NewEvents(render.EventsOptions{Out: o.IO.Out, Format: o.Output, Cluster: j.Cluster(), Noise: true})
		if err != nil {
			return err
		}
		return out.Change(c)
	}
	if _, err := fmt.Fprintf(o.IO.Out, "change   %s\nobject   %s\nversion  %s\nhappened %s\nseen     %s\n\n",
		e.ID, c.Subject(), c.ResourceVersion, c.Time.Local().Format(time.RFC3339), seen(c.Since, c.At)); err != nil {
		return err
	}
	t := render.New(render.Options{
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Color: o.IO.Color, Width: o.IO.Width(),
		Namespaces: true, Full: true, Noise: true, Status: true,
	})
	return errors.Join(t.Change(c.At, c), t.Flush(c.At))
}

func seen(since, at time.Time) string {
	text := at.Local().Format(time.RFC3339)
	if !since.IsZero() {
		text = "between " + since.Local().Format(time.RFC3339) + " and " + text
	}
	return text
}
