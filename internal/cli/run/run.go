// Package run is the verb that records every change and delivers it.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/scope"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/daemon"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO    *terminal.IO
	Kube  kube.Flags
	Scope scope.Flags
	// Types are the arguments, as of watch.
	Types []string
	Noise bool
	// To are addresses of sinks, File is a configuration.
	To      []string
	File    string
	Journal string
}

const long = `Record every change in a journal, and deliver each at least once.

Without a file, the current context is recorded, all namespaces of it, and changes
go to stdout; --to sends them elsewhere, and may be repeated:
  file:changes.jsonl          one event per line
  https://example.com/hook    one event per request
  log: or -                   text on stdout

What exists at the first start is recorded, and not told. After a restart nothing
is told again, and what happened meanwhile is: deletions too. tattler log reads
the journal, also while this runs. The value of a Secret is never written.

Ctrl-C ends it, once the sinks have what is recorded (ten seconds at most).`

const examples = `  tattler run                                       record everything
  tattler run deploy,cm -n shop,pay                 two kinds in two namespaces
  tattler run --to file:changes.jsonl --to https://example.com/hook
  tattler run -c tattler.yaml                       what a file says`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "run [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Record every change, and deliver it",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Scope.Add(f, "all")
	f.BoolVar(&o.Noise, "noise", false, "record hidden kinds, too (events, leases, ...)")
	f.StringArrayVar(&o.To, "to", nil, "deliver to this `address`; repeatable")
	f.StringVarP(&o.File, "config", "c", "", "`file` that says what to watch and where to deliver")
	f.StringVar(&o.Journal, "journal", "", "`file` of the journal")
	o.Kube.Add(f)
	return cmd
}

// Run records until ctx ends.
func Run(ctx context.Context, o *Options) error {
	c, err := o.configuration()
	if err != nil {
		return err
	}
	cluster, err := o.Kube.Load("tattler/" + buildinfo.Version())
	if err != nil {
		return err
	}
	do := daemon.Options{
		Config: cluster.Config, Cluster: cluster.Name, Scopes: o.scopes(c),
		Quiet: config.Rules(c.Quiet), Redact: config.Rules(c.Redact),
		Retention: journal.Retention{Age: c.Journal.Retain.Age, Size: int64(c.Journal.Retain.Size)},
		Log:       logger(o.IO.Err, c.Log), Text: text,
	}
	if c.Cluster.Name != "" {
		do.Cluster = c.Cluster.Name
	}
	if do.Journal, err = o.journal(c, cluster); err != nil {
		return err
	}
	if do.Key, err = kube.RedactionKey(); err != nil {
		return err
	}
	if do.Sinks, err = sinks(c, o.IO.Out); err != nil {
		return err
	}
	do.Tell = func(m capture.Message) { tell(do.Log, cluster, m) }
	do.Log.Info("starting", "cluster", do.Cluster, "journal", do.Journal, "sinks", strings.Join(names(c), ", "))
	return explain(daemon.Run(ctx, do), cluster)
}

// configuration is the file, or what the command line says instead of one.
func (o *Options) configuration() (*config.Config, error) {
	if err := o.Scope.Validate(); err != nil {
		return nil, err
	}
	loader, c := newLoader(), config.Default()
	if o.File != "" {
		if len(o.Types) > 0 || o.Scope.Given() || o.Noise {
			return nil, capture.Usage("-c says what is watched: leave out TYPE, and the flags that select")
		}
		var err error
		if c, err = loader.Load(o.File); err != nil {
			return nil, err
		}
		if c.Listen.Address != "" {
			return nil, fmt.Errorf("%s: listen.address: this version serves no metrics yet: leave listen out", o.File)
		}
	}
	to := o.To
	if len(to) == 0 && o.File == "" {
		to = []string{"-"}
	}
	for _, address := range to {
		s, err := loader.SinkFromURL(address)
		if err != nil {
			return nil, capture.Usage("--to: %v", err)
		}
		if err := c.Add(s); err != nil {
			return nil, capture.Usage("--to: %v", err)
		}
	}
	return c, nil
}

// scopes is what is watched.
func (o *Options) scopes(c *config.Config) []capture.Scope {
	if len(c.Watch) == 0 {
		return []capture.Scope{{
			Types: o.Types, Namespaces: o.Scope.Within(capture.Namespaces{}),
			Labels: o.Scope.Labels, Fields: o.Scope.Fields, Noise: o.Noise,
		}}
	}
	var scopes []capture.Scope
	for _, w := range c.Watch {
		scopes = append(scopes, watched(w)...)
	}
	return scopes
}

// watched is what an entry watches: the kinds that it names, and then, where it takes everything, the
// others.
func watched(w config.Watch) []capture.Scope {
	s := capture.Scope{
		Except: w.Resources.Exclude, Namespaces: capture.Namespaces{Include: w.Namespaces.Include, Exclude: w.Namespaces.Exclude},
		Labels: w.LabelSelector, Fields: w.FieldSelector, Noise: w.Noise,
	}
	var named []string
	all := len(w.Resources.Include) == 0
	for _, r := range w.Resources.Include {
		if r == "*" {
			all = true
		} else {
			named = append(named, r)
		}
	}
	var scopes []capture.Scope
	if len(named) > 0 {
		some := s
		some.Types = []string{strings.Join(named, ",")}
		scopes = append(scopes, some)
	}
	if all {
		scopes = append(scopes, s)
	}
	return scopes
}

func (o *Options) journal(c *config.Config, cluster *kube.Cluster) (path string, err error) {
	switch {
	case o.Journal != "":
		path = o.Journal
	case c.Journal.Path != "":
		path = c.Journal.Path
	default:
		path, err = cluster.Journal()
	}
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("find the journal: %w", err)
	}
	return path, nil
}

func names(c *config.Config) []string {
	var names []string
	for _, s := range c.Sinks {
		names = append(names, s.Name)
	}
	return names
}

func logger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // validated before
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// text writes a change as watch does.
func text(w io.Writer, c change.Change) error {
	t := render.New(render.Options{Out: w, Namespaces: true, Status: true})
	return errors.Join(t.Change(c.At, c), t.Flush(c.At))
}

// tell logs what the watcher says beside changes.
func tell(log *slog.Logger, cluster *kube.Cluster, m capture.Message) {
	switch {
	case m.Ready != nil:
		log.Info("recording", "kinds", m.Ready.Kinds, "objects", m.Ready.Objects, "hidden", strings.Join(m.Ready.Hidden, ","))
		for _, f := range m.Ready.Forbidden {
			log.Warn("may not be watched", "kind", f.Resource.GroupResource(), "namespaces", strings.Join(f.Namespaces, ","), "err", f.Err)
		}
		for _, f := range m.Ready.Failing {
			log.Warn("cannot be watched now", "kind", f.Resource.GroupResource(), "err", cluster.Explain(f.Err))
		}
		if len(m.Ready.Missing) > 0 {
			log.Warn("namespaces do not exist (yet)", "namespaces", strings.Join(m.Ready.Missing, ","))
		}
		if len(m.Ready.Absent) > 0 {
			log.Warn("objects do not exist (yet)", "objects", strings.Join(m.Ready.Absent, ","))
		}
	case m.Away != nil && m.Away.Until.IsZero():
		log.Warn("the API server is away", "err", m.Away.Err)
	case m.Away != nil:
		log.Info("the API server is back", "after", m.Away.Until.Sub(m.Away.Since).Round(100*time.Millisecond), "relisted", m.Away.Relisted)
	}
}

// explain says what a user can do about an error of the start.
func explain(err error, cluster *kube.Cluster) error {
	var locked *journal.LockedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &locked):
		return fmt.Errorf("%w; end it, or choose another file with --journal", err)
	case errors.Is(err, os.ErrPermission):
		return err
	}
	return cluster.ExplainStart(err)
}
