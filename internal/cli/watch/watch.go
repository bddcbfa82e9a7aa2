// Package watch is the verb that shows live diffs of anything in a cluster.
package watch

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/quiet"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/render"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO   *terminal.IO
	Kube kube.Flags
	// Types are the arguments: TYPE[,TYPE…] [NAME…] or TYPE/NAME…; none is everything.
	Types []string

	Namespaces, ExcludeNamespaces []string
	AllNamespaces                 bool
	Labels, Fields                string
	Paths, IgnorePaths            []string

	Output                                string // "", json or yaml
	Initial, Status, Noise, Full, Verbose bool
	Limit                                 int           // 0: no limit
	Timeout                               time.Duration // 0: none
}

const long = `Show what changes, as it changes: one line per change with its manager, then its diff.

TYPE is a plural, singular, kind, short name or category, also with version and group
(deployments.v1.apps); without any, everything is watched. A named workload also shows what
it owns: deploy/web shows its ReplicaSets and pods.

Signs: + created  ~ changed  - deleted  > entered, < left the selection
       · several status changes in one line  = exists (--initial)  ! something about the watch
At the end of a line stands the field manager that wrote the change, ? where the server
does not say. Secrets never show a value.`

const examples = `  tattler watch                          everything in the current namespace
  tattler watch -A                       everything in the cluster
  tattler watch deploy,cm -n shop,pay    two kinds in two namespaces
  tattler watch deploy/web               a deployment, its ReplicaSets and pods
  tattler watch -A --path spec.**.image  who changes images
  tattler watch -A -o json | jq .        one CloudEvents event per line`

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
	f.StringSliceVarP(&o.Namespaces, "namespace", "n", nil, "`namespaces`, also globs; default: the context's")
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "the whole cluster, cluster-scoped kinds included")
	f.StringSliceVar(&o.ExcludeNamespaces, "exclude-namespace", nil, "`namespaces` to leave out, also globs; implies -A without -n")
	f.StringVarP(&o.Labels, "selector", "l", "", "label `selector`, such as app=web,tier!=debug")
	f.StringVar(&o.Fields, "field-selector", "", "field `selector`, such as status.phase=Running")
	f.StringArrayVar(&o.Paths, "path", nil, "show only changes that touch this `path` (docs/paths.md); may be repeated")
	f.StringArrayVar(&o.IgnorePaths, "ignore-path", nil, "leave out changes below this `path`; may be repeated")
	f.StringVarP(&o.Output, "output", "o", "", "`json` (one event per line) or yaml; default: text")
	f.BoolVar(&o.Initial, "initial", false, "first show what exists")
	f.BoolVar(&o.Status, "status", false, "show every status change instead of summaries")
	f.BoolVar(&o.Noise, "noise", false, "show hidden kinds and quiet fields too")
	f.BoolVar(&o.Full, "full", false, "show created objects whole")
	f.IntVar(&o.Limit, "limit", 0, "end after this `number` of changes")
	f.DurationVar(&o.Timeout, "timeout", 0, "end after this `time`, such as 30s")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "list what may not be watched, and why")
	o.Kube.Add(f)
	return cmd
}

func usage(format string, args ...any) error {
	return &capture.UsageError{Text: fmt.Sprintf(format, args...)}
}

// validate checks what can be wrong without asking the server.
func (o *Options) validate() (only, ignore []diff.Pattern, err error) {
	switch o.Output {
	case "", "text", "json", "yaml":
	default:
		return nil, nil, usage("unknown output %q: say text, json or yaml", o.Output)
	}
	if o.AllNamespaces && len(o.Namespaces) > 0 {
		return nil, nil, usage("-A and -n exclude each other")
	}
	if o.Limit < 0 || o.Timeout < 0 {
		return nil, nil, usage("--limit and --timeout cannot be negative")
	}
	if _, err := labels.Parse(o.Labels); err != nil {
		return nil, nil, usage("invalid label selector %q: %v", o.Labels, err)
	}
	if _, err := fields.ParseSelector(o.Fields); err != nil {
		return nil, nil, usage("invalid field selector %q: %v", o.Fields, err)
	}
	if only, err = patterns("--path", o.Paths); err != nil {
		return nil, nil, err
	}
	ignore, err = patterns("--ignore-path", o.IgnorePaths)
	return only, ignore, err
}

func patterns(flag string, texts []string) ([]diff.Pattern, error) {
	var ps []diff.Pattern
	for _, t := range texts {
		p, err := diff.ParsePattern(t)
		if err != nil {
			return nil, usage("%s: %v", flag, err)
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// namespaces applies kubectl's rule: without a flag, the context's namespace.
func (o *Options) namespaces(current string) capture.Namespaces {
	n := capture.Namespaces{Include: o.Namespaces, Exclude: o.ExcludeNamespaces}
	if len(n.Include) == 0 && !o.AllNamespaces && len(n.Exclude) == 0 {
		n.Include = []string{current}
	}
	return n
}

// Run watches until ctx, the limit or the timeout ends it.
func Run(ctx context.Context, o *Options) error {
	only, ignore, err := o.validate()
	if err != nil {
		return err
	}
	cluster, err := o.Kube.Load("tattler/" + buildinfo.Version())
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
	namespaces := o.namespaces(cluster.Namespace)
	w, err := capture.New(capture.Options{
		Config: cluster.Config, Types: o.Types, Namespaces: namespaces,
		Labels: o.Labels, Fields: o.Fields, Noise: o.Noise, Initial: o.Initial,
		Only: only, Ignore: ignore, Redactor: redactor, Quiet: rules,
	})
	if err != nil {
		return err
	}
	out, err := o.printer(cluster, namespaces)
	if err != nil {
		return err
	}
	s := &session{
		o: o, cluster: cluster, watcher: w, namespaces: namespaces,
		printer: out, start: time.Now(),
	}
	return cluster.Explain(s.run(ctx))
}

// printer is what shows changes: as text, which folds, or as events, which do not.
type printer interface {
	Change(now time.Time, c capture.Change) error
	Notice(now time.Time, text string) error
	// Next is when Tick wants to be called; false for never.
	Next() (time.Time, bool)
	Tick(now time.Time) error
	Flush(now time.Time) error
	// Unlisted says how many changes were not listed; empty for none.
	Unlisted() string
}

func (o *Options) printer(cluster *kube.Cluster, n capture.Namespaces) (printer, error) {
	if o.Output == render.JSON || o.Output == render.YAML {
		e, err := render.NewEvents(render.EventsOptions{
			Out: o.IO.Out, Format: o.Output, Cluster: cluster.Name, Noise: o.Noise,
		})
		return &events{Events: e, status: o.IO.Err}, err
	}
	single := len(n.Include) == 1 && !strings.ContainsAny(n.Include[0], `*?[\`)
	return &text{render.New(render.Options{
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Color: o.IO.Color, Width: o.IO.Width(),
		Namespaces: !single, Full: o.Full, Status: o.Status, Noise: o.Noise,
	})}, nil
}

// text folds; what it left out is counted at the end.
type text struct{ *render.Text }

func (t *text) Unlisted() string { return quietNote(t.Counts().Quiet) }

// events prints each change as it comes; what is not a change goes to the status stream.
type events struct {
	*render.Events
	status io.Writer
}

func (e *events) Change(_ time.Time, c capture.Change) error { return e.Events.Change(c) }
func (e *events) Next() (time.Time, bool)                    { return time.Time{}, false }
func (e *events) Tick(time.Time) error                       { return nil }
func (e *events) Flush(time.Time) error                      { return nil }
func (e *events) Unlisted() string                           { return quietNote(e.Quiet()) }
func (e *events) Notice(_ time.Time, text string) error {
	_, err := fmt.Fprintln(e.status, "!", text)
	return err
}

func quietNote(n int) string {
	if n == 0 {
		return ""
	}
	return count(n, "quiet change") + " not shown (--noise)"
}
