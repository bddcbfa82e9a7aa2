// Package log is the verb that shows what changed, from the journal.
package log

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/when"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO   *terminal.IO
	Past past.Flags
	selection.Options

	Limit      int // 0: no limit
	Follow     bool
	Output     string
	Flat, Full bool

	// Related selects the named objects and everything related to them; Tree also prints them as a tree.
	Related, Tree bool
	// Story is the beginning of the id of a story: only its changes are shown; empty: all.
	Story string
	// Stat counts changes instead of printing them.
	Stat bool
	// HTML is the file of a page with the lines; - is standard output.
	HTML string
	// Command is the command line, for the page.
	Command string

	// Now is the time; nil is time.Now.
	Now func() time.Time
	// Recording reports whether a daemon writes a journal; nil asks the journal.
	Recording func(ctx context.Context, journal string) bool
}

// The forms of output, besides those of render.Events.
const (
	text    = "text"
	oneline = "oneline"
)

const long = `Show what changed, from the journal that tattler run writes. The newest change
comes last. The command contacts the cluster only with --in-cluster, or if there
is no journal.

TYPE is a plural, singular, kind or short name, as in watch; without it, every
kind is shown. A named workload includes the objects that it owned, such as the
ReplicaSets and pods of deploy/web.

A rollout, the start of a pod, a Job's run, a failure or a deletion is a story:
one line for all of its changes, with the sign · and the time at which it came
to where it stands. --story shows the changes of one, --flat each change instead
of stories. --severity failure shows only changes that are failures, and stories
in which something failed. --humans leaves out routine changes by controllers.
With --op, --manager, --path, --where or --humans, each change has its own line.

Besides created, updated and deleted, --op selects entered and left (an existing
object began, or ceased, to match the selection of tattler run), gap (versions
were missed), absent (tattler run did not watch for a while), snapshot (the
object existed when its kind was first watched), and converted (the API server
serves the same version in another form).

Write times as ` + when.Forms + `.
A change has the time that its object records for it. If Tattler saw the change
much later, the line also has "seen" and that later time. If the object records
no time, the line shows the interval in which the change happened. A story has
the times that the objects record for its end or, while it is not over, for its
last change. A time range selects all changes that may have happened within it,
and the stories that changed within it, as they were at its end.

--related also shows changes of objects that were related to the named ones at
some time in the range: owners and what they own; the ConfigMaps, Secrets,
claims and other objects that the pods name; the Services, NetworkPolicies and
PodDisruptionBudgets that select them; autoscalers; routes to their Services;
the nodes of their pods; and Events about any of these. Each line names the
object through which it is related. --tree prints the same lines as a tree.

The search for related objects takes at most 10 steps, and stays within the
namespaces of the named objects. It does not continue from objects that many
others share, such as a node, a PriorityClass or a shared ConfigMap: other users
of a ConfigMap are not shown.

Events are shown only if tattler run records them, even if you name them as a
TYPE here. It records them with --noise, or if they are named (tattler run
events).

--stat counts changes by object, manager and path; * stands for any element of
a list. --html writes the lines as one page without scripts, to attach to an
incident report. It replaces an existing page.

If there is no journal, the command lists the objects of the selected kinds in
the cluster. It shows the writes of the last hour, or since --since, that the
cluster still records. These lines are reconstructed, and have the sign ≈.

With -o oneline, a line begins with the change's id, for tattler show.`

const examples = `  tattler log                              the last 50 lines
  tattler log -f                           also new lines, until Ctrl-C
  tattler log --since 10:40 --until 10:45  what changed at 10:42?
  tattler log deploy/web -n shop           a Deployment and its objects
  tattler log deploy/web --path 'spec.**.image'
                                           who changed the image, and when?
  tattler log --severity failure           what failed?
  tattler log --op deleted --since yesterday
  tattler log deploy/web --related --since 1h
                                           and the objects related to it
  tattler log --since 1d --stat            what changes most?
  tattler log --since 1h --html incident.html
  tattler log -o json | jq .data           one CloudEvents event per line`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "log [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Show what changed",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Types = args
			o.Command = command(cmd, args)
			if (o.Since != "" || o.Until != "") && !cmd.Flags().Changed("limit") {
				o.Limit = 0 // the time range is the limit
			}
			if o.Stat && !cmd.Flags().Changed("limit") {
				o.Limit = statRows
				if o.Output == render.JSON {
					o.Limit = 0
				}
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.AddPast(f)
	o.AddFlags(f)
	f.IntVar(&o.Limit, "limit", 50, "show only the last changes and stories, at most this `number`; 0: all; with --since or --until, the default is 0")
	f.BoolVarP(&o.Follow, "follow", "f", false, "then show new changes as they are recorded")
	f.StringVarP(&o.Output, "output", "o", text, "`format`: text, oneline, json or yaml (events)")
	f.BoolVar(&o.Flat, "flat", false, "show each change, no stories")
	f.StringVar(&o.Story, "story", "", "show the changes of the story with this `id`, or its beginning")
	f.BoolVar(&o.Full, "full", false, "show long values and new objects in full; in a pipe, always")
	f.BoolVar(&o.Noise, "noise", false, "also show quiet changes and fields")
	f.BoolVar(&o.Related, "related", false, "also show objects related to the named ones, and how they are related")
	f.BoolVar(&o.Tree, "tree", false, "like --related, printed as a tree")
	f.BoolVar(&o.Stat, "stat", false, "count changes by object, manager and path; --limit applies to each table, and its default is then 10, or 0 with -o json")
	f.StringVar(&o.HTML, "html", "", "write one self-contained page to this `file`, or to stdout (-)")
	complete.Files(cmd, "html")
	complete.Words(cmd, "severity", selection.Severities...)
	complete.Words(cmd, "output", text, oneline, render.JSON, render.YAML)
	o.Past.AddServed(cmd)
	o.Past.CompleteObjects(cmd)
	return cmd
}

// Run shows the selected changes; with Follow, until ctx ends, which is not an error.
func Run(ctx context.Context, o *Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	s, err := o.selection()
	if err != nil {
		return err
	}
	if path, missing := o.Past.Missing(ctx); missing {
		return o.reconstruct(ctx, s, path)
	}
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	j.ReadForwards()
	clusters, err := j.Within(ctx, o.Clusters)
	if err != nil {
		return err
	}
	s.several = len(clusters) > 1 && !o.Related && !o.Tree
	if o.Recording == nil {
		o.Recording = func(ctx context.Context, _ string) bool { return j.Recording(ctx) }
	}
	if o.Story != "" {
		return o.story(ctx, j, s)
	}
	if o.Stat {
		return (&counter{lister: &lister{o: o, journal: j, selected: s}}).run(ctx)
	}
	out, err := o.printer(s, j.Cluster())
	if err != nil {
		return err
	}
	return (&lister{o: o, journal: j, selected: s, out: out}).run(ctx)
}
