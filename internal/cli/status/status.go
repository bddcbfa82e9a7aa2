// Package status is the verb that shows the daemon's state.
package status

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/report"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Options are the verb's flags.
type Options struct {
	IO     *terminal.IO
	Past   past.Flags
	Output string
	// Now returns the time; nil is time.Now.
	Now func() time.Time
}

const long = `Show what the daemon (tattler run) is doing: which kinds it watches or may not
watch, the position of each sink, and the size of the journal.

The command uses a socket beside the journal, which only the daemon's user can
open. With --in-cluster, it asks the daemon's web page, and you need the right
to see the daemon's status. The exit code is 1 if no daemon answers.`

const examples = `  tattler status
  tattler status -c tattler.yaml
  tattler status --journal /var/lib/tattler/journal.db
  tattler status -o json | jq '.sinks[] | {name, behind}'`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show what the daemon is doing",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.Output, "output", "o", "text", "`format`: text or json")
	complete.Words(cmd, "output", "text", "json")
	o.Past.AddServed(cmd)
	return cmd
}

// Run prints the state.
func Run(ctx context.Context, o *Options) error {
	if o.Output != "text" && o.Output != "json" {
		return usage.Errorf("unknown output %q: use text or json", o.Output)
	}
	s, err := o.Past.Status(ctx)
	if err != nil {
		return err
	}
	if o.Output == "json" {
		return render.WriteJSON(o.IO.Out, s)
	}
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	return report.Status(o.IO.Out, &s, now(), o.IO.Width())
}
