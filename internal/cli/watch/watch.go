// Package watch is the verb that shows live diffs of anything in a cluster.
package watch

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO   *terminal.IO
	Kube kube.Flags
	// Options has Types, Objects, Paths, Severities, Humans and Noise. Since is the time from which on writes are
	// reconstructed; empty: none are.
	selection.Options
	IgnorePaths []string

	Output                       string // "", json or yaml
	Initial, Flat, Full, Verbose bool
	Limit                        int           // 0: no limit
	Timeout                      time.Duration // 0: none
}

const long = `Show changes as they happen: one line per change, then its diff.

TYPE is a plural, singular, kind, short name or category, optionally with
version and group (deployments.v1.apps), or a glob of plural and group (deploy*
or '*.example.com'). Without TYPE, everything is watched, except noisy kinds
(events, leases, endpoints, endpointslices): name them, or use --noise. A named
workload also shows its dependents, such as its ReplicaSets and pods.

A line begins with its time and a sign:
  + created   ~ changed   - deleted   · a story, in place of several changes
  > now matches the selection   < no longer matches it
  = exists (--initial)   ! something about the watch itself
It ends with the field manager that wrote the change, or ? if the server does
not name the manager. The values of Secrets are never shown.

Write paths as they are shown: spec.replicas, data["app.properties"],
spec.containers[name=app].image. In a path, * matches any key, and ** any number
of steps. A path includes everything below it.

A rollout, the start of a pod, a Job's run, a failure or a deletion is a story:
one line for all of its changes, when it is over, if something is wrong, or if
it takes long. --flat shows each change. --severity failure shows only failures.
With --path, --ignore-path or --humans, there are no stories. With --path, an
object that appears or disappears is shown with the values at the selected
paths. --humans shows the writes of people, tools and custom controllers. It
leaves out writes by Kubernetes components, status changes, and the appearance
and disappearance of objects owned by a controller.

--since first shows what the cluster still records of earlier writes: the last
write of each manager, rollouts, conditions, and containers that ended. These
lines are reconstructed, and have the sign ≈.

Changes go to stdout, status to stderr. Ctrl-C ends the watch.`

const examples = `  tattler watch                            everything in the current namespace
  tattler watch -A                         the whole cluster
  tattler watch deploy,cm -n shop,pay      two kinds in two namespaces
  tattler watch deploy/web                 a Deployment and its dependents
  tattler watch -A --since 1h              first the writes of the last hour
  tattler watch -A --path 'spec.**.image'  who changes images
  tattler watch -A -o json | jq .data      one CloudEvents event per line`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "watch [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Show live diffs of anything in the cluster",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Add(f, "the context's")
	o.AddFlags(f, "path")
	f.StringArrayVar(&o.IgnorePaths, "ignore-path", nil, "ignore changes below this `path`; repeatable")
	o.AddFlags(f, "severity")
	f.StringVarP(&o.Output, "output", "o", "", "`format`: text, json or yaml (events)")
	f.StringVar(&o.Since, "since", "", "first show reconstructed writes since this `time`, such as 1h")
	f.BoolVar(&o.Initial, "initial", false, "show existing objects first")
	o.AddFlags(f, "humans")
	f.BoolVar(&o.Flat, "flat", false, "show each change, no stories")
	f.BoolVar(&o.Noise, "noise", false, "also show noisy kinds and quiet fields")
	f.BoolVar(&o.Full, "full", false, "show long values and new objects in full; in a pipe, always")
	f.IntVar(&o.Limit, "limit", 0, "stop after this `number` of changes")
	f.DurationVar(&o.Timeout, "timeout", 0, "stop after this `time`, such as 30s")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "list kinds that you may not watch, and why")
	complete.Words(cmd, "severity", selection.Severities...)
	complete.Words(cmd, "output", "text", render.JSON, render.YAML)
	o.Kube.Add(cmd)
	return cmd
}

// validate checks the options that need no server.
func (o *Options) validate() (*filter, error) {
	switch o.Output {
	case "", "text", "json", "yaml":
	default:
		return nil, usage.Errorf("unknown output %q: use text, json or yaml", o.Output)
	}
	if o.Limit < 0 || o.Timeout < 0 {
		return nil, usage.Errorf("--limit and --timeout cannot be negative")
	}
	return o.filter()
}

// Run watches until ctx, the limit or the timeout ends it.
func Run(ctx context.Context, o *Options) error {
	f, err := o.validate()
	if err != nil {
		return err
	}
	since, err := o.sinceTime(time.Now())
	if err != nil {
		return err
	}
	cluster, err := o.Kube.Load()
	if err != nil {
		return err
	}
	redactor, err := redact.New(redact.NewRandomKey(), nil)
	if err != nil {
		return err
	}
	rules, err := quiet.New()
	if err != nil {
		return err
	}
	namespaces := o.Within(selection.Namespaces{Include: []string{cluster.Namespace}}) // kubectl's rule
	status := terminal.NewStatus(o.IO.Err, o.IO.ErrTTY)
	past, err := o.history(since, cluster, namespaces, status, rules, f)
	if err != nil {
		return err
	}
	w, err := capture.New(capture.Options{
		Config: cluster.Config, Scopes: []capture.Scope{{Types: o.Types, Namespaces: namespaces, Labels: o.Labels, Fields: o.Fields, Noise: o.Noise}},
		Initial: o.Initial || past != nil, Owned: true, Objects: true, Redactor: redactor, Quiet: rules,
	})
	if err != nil {
		return fmt.Errorf("context %q of the kubeconfig: %w", cluster.Name, err)
	}
	out, err := o.printer(cluster, namespaces, status, f)
	if err != nil {
		return err
	}
	if past != nil {
		past.source = w
	}
	s := &session{
		o: o, filter: f, cluster: cluster, watcher: w, namespaces: namespaces,
		printer: out, unroller: unroller{initial: o.Initial, paths: change.Paths{Only: f.Paths, Ignore: f.ignore}},
		status: status, start: time.Now(), history: past,
	}
	return s.run(ctx)
}

// printer shows changes: as text, with stories, or as events.
type printer interface {
	Change(now time.Time, c change.Change) error
	Notice(now time.Time, text string) error
	// Next returns when Tick wants to be called; false for never.
	Next() (time.Time, bool)
	Tick(now time.Time) error
	Flush(now time.Time) error
	// SetWidth is called before each of the others, because the terminal may have changed.
	SetWidth(columns int)
	// Unlisted describes how many changes were not listed; empty for none.
	Unlisted() string
}

func (o *Options) printer(cluster *kube.Cluster, n selection.Namespaces, status *terminal.Status, f *filter) (printer, error) {
	out := status.Before(o.IO.Out)
	if o.Output == render.JSON || o.Output == render.YAML {
		e, err := render.NewEvents(render.EventsOptions{
			Out: out, Format: o.Output, Cluster: cluster.Name, Noise: o.Noise,
		})
		return &events{Events: e, status: status}, err
	}
	ro := o.rendering(out, n, f)
	ro.Ignore = f.ignore
	return &ordered{printer: &text{render.NewStream(ro)}}, nil
}

// rendering returns the options of a text.
func (o *Options) rendering(out io.Writer, n selection.Namespaces, f *filter) render.Options {
	return render.Options{
		Out: out, Terminal: o.IO.OutTTY, Color: o.IO.Color,
		Watching: true, Namespaces: n.One() == "", Full: o.Full || !o.IO.OutTTY, Flat: f.each, Noise: o.Noise, Only: f.Paths, Severities: f.lines,
	}
}

// text prints stories in place of routine changes; it counts the unlisted ones at the end.
type text struct{ *render.Stream }

func (t *text) Unlisted() string { return quietNote(t.Counts().Quiet) }

// events prints each change as it comes; everything else goes to the status stream.
type events struct {
	*render.Events
	status *terminal.Status
}

func (e *events) Change(_ time.Time, c change.Change) error { return e.Events.Change(c) }
func (e *events) Next() (time.Time, bool)                   { return time.Time{}, false }
func (e *events) Tick(time.Time) error                      { return nil }
func (e *events) Flush(time.Time) error                     { return nil }
func (e *events) SetWidth(int)                              {}
func (e *events) Unlisted() string                          { return quietNote(e.Quiet()) }
func (e *events) Notice(_ time.Time, text string) error {
	e.status.Line("! %s", text)
	return nil
}

func quietNote(n int) string {
	if n == 0 {
		return ""
	}
	return count(n, "quiet change") + " not shown (--noise)"
}
