// Package sinks is the verb that shows and controls the delivery of changes to sinks.
package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/report"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/spell"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
)

// Options are the flags and arguments of the verb and its subcommands.
type Options struct {
	IO     *terminal.IO
	Past   past.Flags
	Output string
	// Names are sinks. For dead, the first is a sink and the others are ids.
	Names []string
	// Since and All say where a replay begins.
	Since string
	All   bool
	// Replay and Drop say what to do with dead letters.
	Replay, Drop bool
	// Now returns the current time; nil is time.Now.
	Now func() time.Time
}

const long = `Show where changes are delivered, and control the delivery.

Each sink has its own position in the journal. Changes that a sink has not
received yet wait in the journal, as long as the journal keeps them. BEHIND
counts these changes, including those that the sink's filter will reject; LAG is
how long the first of them has waited. LOST counts changes that the sink will
never get: those that the journal had to remove, and dead letters beyond the
newest 10,000. A change that the receiver refuses for good becomes a dead
letter, which can be sent again as long as the journal keeps the change.

Without a running daemon, the commands read and write the journal directly. Only
a running daemon can send dead letters again, and only it knows which sinks are
no longer configured.`

const examples = `  tattler sinks                             the position of each sink
  tattler sinks pause hook                  until tattler sinks resume hook
  tattler sinks replay hook --since 10:40   deliver again what came since then
  tattler sinks skip hook 4f7k2m            set aside the blocking change
  tattler sinks dead hook                   what the receiver refused, and why
  tattler sinks dead hook --replay --all    send all dead letters again
  tattler sinks remove hook                 remove a sink no longer configured`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := o.command("sinks [COMMAND]", "Show and control where changes are delivered", func(ctx context.Context) error { return List(ctx, o) })
	cmd.Long, cmd.Example = long, examples
	cmd.Args = func(cmd *cobra.Command, words []string) error { return unknown(cmd, words) }
	o.output(cmd)

	pause := o.command("pause NAME...", "Stop delivering; new changes wait in the journal", func(ctx context.Context) error { return Pause(ctx, o, true) })
	pause.Long = `Stop delivering to sinks until they are resumed, even across restarts. New
changes wait in the journal, as long as the journal keeps them.`
	resume := o.command("resume NAME...", "Deliver again, from where the sink stopped", func(ctx context.Context) error { return Pause(ctx, o, false) })
	resume.Long = `Deliver to sinks again, from where they stopped, including sinks whose
configuration starts them paused. A sink that failed is retried at once.`

	replay := o.command("replay NAME (--since TIME | --all)", "Deliver changes again", func(ctx context.Context) error { return Replay(ctx, o) })
	replay.Long = `Deliver again every change since a time, in order and with the same ids, and
then the changes that the sink has not received yet.

Write times as ` + when.Forms + `.`
	replay.Args = cobra.ExactArgs(1)
	replay.Flags().StringVar(&o.Since, "since", "", "changes seen since this `time`")
	replay.Flags().BoolVar(&o.All, "all", false, "all changes in the journal")
	o.Past.Add(replay)

	skip := o.command("skip NAME [ID]", "Set aside the change that blocks a sink", func(ctx context.Context) error { return Skip(ctx, o) })
	skip.Long = `Turn the change that blocks a sink into a dead letter, and continue with the
next change. tattler status shows the blocking change. ID is its id or a prefix
of the id; if a different change blocks the sink now, nothing is skipped.
Without ID, the command skips whichever change blocks the sink, and prints its
id.
tattler sinks dead NAME ID --replay sends the change again. With retry.giveUp, a
sink skips such changes by itself.

Without a running daemon, ID is required, and must be the first change that the
sink has not received yet.`
	skip.Args = cobra.RangeArgs(1, 2)
	o.Past.Add(skip)

	dead := o.command("dead NAME [--replay | --drop] [ID... | --all]", "Show dead letters, send them again, remove them", func(ctx context.Context) error { return Dead(ctx, o) })
	dead.Long = `Show the dead letters of a sink, and why the sink did not accept each. Send them
again with --replay, or remove them for good with --drop. ID is the id of a dead
letter or a prefix of the id. A change that is refused again stays a dead
letter.`
	dead.Flags().BoolVar(&o.Replay, "replay", false, "send the dead letters again")
	dead.Flags().BoolVar(&o.Drop, "drop", false, "remove the dead letters for good")
	dead.Flags().BoolVar(&o.All, "all", false, "all dead letters of the sink")
	o.output(dead)

	remove := o.command("remove NAME...", "Remove a sink that is no longer configured", func(ctx context.Context) error { return Remove(ctx, o) })
	remove.Long = `Remove the position and the dead letters of sinks that are no longer configured.
Only the running daemon can do this, because it knows the configuration. If you
configure such a sink again, it starts anew.`

	for _, c := range []*cobra.Command{pause, resume, remove} {
		o.Past.Add(c)
	}
	cmd.AddCommand(pause, resume, replay, skip, dead, remove)
	return cmd
}

// command returns a command that runs f with its arguments.
func (o *Options) command(use, short string, f func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.MinimumNArgs(1), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return f(cmd.Context())
		},
	}
	cmd.Flags().SortFlags = false
	return cmd
}

// output declares the flags of a command that prints.
func (o *Options) output(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Output, "output", "o", "text", "`format`: text or json")
	complete.Words(cmd, "output", "text", "json")
	o.Past.Add(cmd)
}

// unknown returns an error for words that are not a subcommand.
func unknown(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	text := ""
	if near := spell.Nearest(words[0], names); near != "" {
		text = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return usage.Errorf("unknown command %q%s; see `%s --help`", words[0], text, cmd.CommandPath())
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

func (o *Options) say(format string, args ...any) {
	fmt.Fprintln(o.IO.Out, terminal.Line(fmt.Sprintf(format, args...)))
}

// read passes use a reader of the journal.
func (o *Options) read(ctx context.Context, use func(*journal.Reader) error) error {
	path, err := o.Past.File(ctx)
	if err != nil {
		return err
	}
	r, err := past.OpenReader(ctx, path)
	if err != nil {
		return err
	}
	defer r.Close()
	return use(r)
}

// List shows the sinks as the daemon reports them, or else as they are in the journal.
func List(ctx context.Context, o *Options) error {
	if err := o.checkOutput(); err != nil {
		return err
	}
	path, err := o.Past.File(ctx)
	if err != nil {
		return err
	}
	all, err := o.list(ctx, path)
	if err != nil {
		return err
	}
	if o.Output == "json" {
		return o.json(all)
	}
	if len(all) == 0 {
		o.say("There are no sinks: changes are recorded only.")
		return nil
	}
	return report.Sinks(o.IO.Out, all, o.now(), o.IO.Width())
}

// list asks the daemon or, if none runs, the journal. Sinks that are no longer configured come last.
func (o *Options) list(ctx context.Context, path string) ([]control.Sink, error) {
	c := &sinkadmin.Console{Status: (&control.Client{Journal: path}).Status, Read: o.read, Now: o.now}
	s, err := c.State(ctx)
	var none *control.NoDaemonError
	switch {
	case err != nil:
		return nil, err
	case errors.As(s.Idle, &none):
		fmt.Fprintf(o.IO.Err, "No daemon records into %s; this is the journal's state.\n", terminal.Line(path))
	case s.Idle != nil:
		return nil, s.Idle
	}
	return s.All(), nil
}

func (o *Options) checkOutput() error {
	if o.Output != "" && o.Output != "text" && o.Output != "json" {
		return usage.Errorf("unknown output %q: use text or json", o.Output)
	}
	return nil
}

func (o *Options) json(v any) error {
	return render.WriteJSON(o.IO.Out, v)
}
