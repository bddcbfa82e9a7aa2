// Package run is the verb that records and delivers changes.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/daemon"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/ops"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO    *terminal.IO
	Setup setup.Flags
}

const long = `Record every change in a journal, and deliver it at least once unless it is
quiet.

TYPE is as in tattler watch; a glob also matches kinds that appear later.
Without TYPE and without a file, everything in the cluster of the current
context is recorded, except noisy kinds (events, leases, endpoints,
endpointslices): name them, or use --noise. Changes go to stdout; --to sends
them elsewhere, and may be repeated:
  file:changes.jsonl          one event per line
  https://example.com/hook    one event per request
  https://hooks.slack.com/…   a message; also Teams, Discord, and others
  nats://  kafka://  amqp://  redis://  mqtt://  otlp://     buses
  exec:/usr/local/bin/notify  a command, with the event on its stdin
  log: or -                   text on stdout
docs/sinks describes the sinks and the form of each address.

Objects that exist at the first start are recorded, but delivered only to sinks
with snapshots: true. After a restart, what changed in the meantime is
delivered, including deletions. tattler log reads the journal, even while
tattler run is running. The values of Secrets are never written.

Ctrl-C stops tattler run as soon as the sinks have the recorded changes, and
after ten seconds at the latest.`

const examples = `  tattler run                                  record everything
  tattler run deploy,cm -n shop,pay            two kinds in two namespaces
  tattler run --to file:changes.jsonl --to https://example.com/hook
  tattler run -c tattler.yaml                  as configured in a file
  tattler config check -c tattler.yaml         check the file and the rights
  tattler rbac -c tattler.yaml                 print the required rights`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO, program *kinds.Program) *cobra.Command {
	o := &Options{IO: io, Setup: setup.Flags{Program: program}}
	cmd := &cobra.Command{
		Use:     "run [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Record every change and deliver it",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Setup.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Setup.Add(cmd)
	return cmd
}

// Run records until ctx ends.
func Run(ctx context.Context, o *Options) error {
	s, err := o.Setup.Load()
	if err != nil {
		return err
	}
	var cluster *kube.Cluster // nil: several
	if !s.Several() {
		if cluster, err = o.Setup.Kube.Load(); err != nil {
			return err
		}
	}
	beside := terminal.NewStatus(o.IO.Err, o.IO.ErrTTY)
	do := daemon.Options{
		Network: s.Journal.Network,
		Quiet:   config.Rules(s.Quiet), Redact: config.Rules(s.Redact),
		Retention: journal.Retention{Age: s.Journal.Retain.Age, Size: int64(s.Journal.Retain.Size)},
		Log:       logger(beside.Before(o.IO.Err), s.Log), Text: text(s.Several()), Story: story,
	}
	name := strings.Join(clusterNames(s), ", ")
	if cluster != nil {
		name = s.KnownName(cluster)
		do.Config, do.Cluster, do.Scopes, do.Rights = cluster.Config, name, s.Scopes, setup.WebRights(s.Web)
		do.OnMessage, do.Explain = func(m capture.Message) { logMessage(do.Log, cluster, m) }, cluster.ExplainStart
	} else {
		do.Clusters = clusters(s, do.Log)
	}
	if do.Journal, err = s.JournalFile(cluster); err != nil {
		return err
	}
	if do.Key, err = s.KeyFile(); err != nil {
		return err
	}
	if _, err := daemon.ReadKey(do.Key); err != nil && !errors.Is(err, os.ErrNotExist) { // before any request
		return err
	}
	if do.Sinks, do.Open, err = s.MakeSinks(beside.Before(o.IO.Out)); err != nil {
		return err
	}
	if do.Traces, err = s.MakeTraces(do.Log); err != nil {
		return err
	}
	first := &beginning{s: s, cluster: cluster, journal: do.Journal, log: do.Log, name: name}
	if cluster != nil {
		do.Begin = first.begin
	}
	if s.Listen.Address != "" {
		l, err := ops.Listen(ctx, "listen.address", s.Listen.Address, s.Listen.Pprof)
		if err != nil {
			return s.Blame("listen.address", "%v", err)
		}
		defer l.Close() // unless the daemon gets to serve it
		do.Serve = serve(l, ops.Options{Address: s.Listen.Address, Pprof: s.Listen.Pprof, Log: do.Log})
	}
	if s.Web.Address != "" {
		l, err := ops.Listen(ctx, "web.address", s.Web.Address, false)
		if err != nil {
			return s.Blame("web.address", "%v", err)
		}
		defer l.Close() // unless the daemon gets to serve it
		protection, err := protect(s, cluster, do.Log)
		if err != nil {
			return s.Blame("web", "%v", err)
		}
		p := newPage(s, first, do.Journal, do.Log)
		p.refusals = protection.Refusals()
		do.Serve, do.TakeOrders, do.PageRefusals = together(do.Serve, servePage(l, protection, p)), p.take, p.pageRefusals
	}
	if o.IO.ErrTTY {
		do.Serve = progress(beside, cluster != nil && cluster.Config.ExecProvider == nil || cluster == nil && !interactive(s), do.Serve)
	}
	if do.Announce, err = kube.Running(); err != nil { // without a home directory, other commands cannot look there either
		do.Announce = ""
	}
	do.Log.Info("starting", "cluster", name, "journal", do.Journal, "sinks", strings.Join(s.SinkNames(), ", "))
	err = daemon.Run(ctx, do)
	if first.failed != nil && errors.Is(err, first.failed) { // it was explained
		return err
	}
	return explain(s.Explain(err), cluster)
}

// beginning is what the daemon of one cluster asks the API server before it opens the journal.
type beginning struct {
	s       *setup.Setup
	cluster *kube.Cluster
	journal string
	log     *slog.Logger
	failed  error // the last error

	mu   sync.Mutex
	name string // of the cluster; empty while it is unknown
}

// begin returns the cluster's name. For a new journal, it also checks what would be watched, so that none is made for something
// that cannot be watched. An existing journal may know kinds that the server no longer has.
func (b *beginning) begin(ctx context.Context) (name string, err error) {
	defer func() { b.failed = err }()
	if name = b.known(); name == "" {
		if name, _, err = b.s.ClusterName(ctx, b.cluster); err != nil {
			return "", err
		}
		b.log.Info("named the cluster after the UID of its namespace kube-system; cluster.name sets another name", "cluster", name)
		b.mu.Lock()
		b.name = name
		b.mu.Unlock()
	}
	if _, missing := os.Stat(b.journal); errors.Is(missing, os.ErrNotExist) {
		_, err = b.s.Plan(ctx, b.cluster)
	}
	return name, err
}

// known returns the cluster's name; empty while it is unknown.
func (b *beginning) known() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.name
}

// serve returns a function that serves the daemon's state for platforms.
func serve(l net.Listener, o ops.Options) served {
	return func(ctx context.Context, status func(context.Context) (control.Status, error)) error {
		o.Status = status
		return ops.Serve(ctx, l, o)
	}
}

// redraw is the interval at which the start's progress is drawn.
const redraw = 250 * time.Millisecond

// served is the type of daemon.Options.Serve.
type served func(ctx context.Context, status func(context.Context) (control.Status, error)) error

// progress draws the start's progress while other serves. early allows drawing before there is any status;
// otherwise it could overwrite the prompt of a credential plugin on the same line.
func progress(line *terminal.Status, early bool, other served) served {
	return func(ctx context.Context, status func(context.Context) (control.Status, error)) error {
		if other == nil {
			defer line.Clear()
			draw(ctx, line, early, status)
			return nil
		}
		drawing, stop := context.WithCancel(ctx)
		var drawn sync.WaitGroup
		drawn.Go(func() {
			defer line.Clear()
			draw(drawing, line, early, status)
		})
		err := other(ctx, status)
		stop()
		drawn.Wait()
		return err
	}
}

func draw(ctx context.Context, line *terminal.Status, early bool, status func(context.Context) (control.Status, error)) {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, err := status(ctx)
		live, objects := 0, 0
		for _, st := range s.Streams {
			if objects += st.Objects; st.State == control.Live {
				live++
			}
		}
		switch {
		case err != nil:
		case s.Settled:
			return
		case s.Starting != "":
			line.Progress("%s: %s …", s.Cluster, s.Starting)
		case len(s.Streams) > 0:
			line.Progress("%s: %d of %d streams live, %d objects …", s.Cluster, live, len(s.Streams), objects)
		case early:
			line.Progress("%s: asking the server for its kinds …", s.Cluster)
		}
	}
}

func logger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // validated before
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
			return slog.Attr{} // omit empty values, such as a namespace
		}
		return a
	}}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// text returns a function that writes a change as watch does. With several clusters, a line names its cluster.
func text(several bool) func(w io.Writer, c change.Change) error {
	return func(w io.Writer, c change.Change) error {
		t := render.New(render.Options{Out: w, Namespaces: true, Flat: true, Clusters: several})
		return errors.Join(t.Change(c.At, c), t.Flush(c.At))
	}
}

// story follows an object for messages; the followed value is a *render.Story.
func story(so sink.Story, sent bool, c change.Change) sink.Story {
	s, _ := so.(*render.Story)
	if s = s.Follow(c, sent); s == nil {
		return nil
	}
	return s
}

// logMessage logs the watcher's messages other than changes.
func logMessage(log *slog.Logger, cluster *kube.Cluster, m capture.Message) {
	switch {
	case m.Ready != nil:
		log.Info("recording", "kinds", m.Ready.Kinds, "objects", m.Ready.Objects, "hidden", strings.Join(m.Ready.Hidden, ","))
		logRefused(log, cluster, m.Ready)
		if len(m.Ready.Missing) > 0 {
			log.Warn("namespaces do not exist (yet)", "namespaces", strings.Join(m.Ready.Missing, ","))
		}
		if len(m.Ready.Unmatched) > 0 {
			log.Info("no kind matches (yet)", "globs", strings.Join(m.Ready.Unmatched, ","))
		}
		if len(m.Ready.Unfilled) > 0 {
			log.Warn("redaction rules name kinds that the server does not have (yet)", "resources", strings.Join(m.Ready.Unfilled, ","))
		}
		if len(m.Ready.Absent) > 0 {
			log.Warn("objects do not exist (yet)", "objects", strings.Join(m.Ready.Absent, ","))
		}
	case m.Away != nil:
		logAway(log, m.Away)
	}
}

// logAway logs that changes cannot be, or could not be, seen for a while.
func logAway(log *slog.Logger, a *capture.Away) {
	lasted := a.Until.Sub(a.Since).Round(100 * time.Millisecond)
	switch {
	case a.Until.IsZero():
		log.Warn("the API server is away", "error", a.Err)
	case a.Paused:
		log.Warn("this process did not run, for example because it was stopped or the machine slept", "for", lasted)
	case a.Silent && a.Err == nil: // on a connection that outlived it
		log.Info("the API server was silent, and answers again", "for", lasted)
	default:
		log.Info("the API server is back", "after", lasted, "relisted", a.Relisted)
	}
}

// logRefused logs what is not recorded: one line for all kinds that may not be watched, and one for each other
// reason.
func logRefused(log *slog.Logger, cluster *kube.Cluster, r *capture.Ready) {
	if n := len(r.Forbidden); n > 0 {
		what := "not allowed to watch 1 kind, which is not recorded"
		if n > 1 {
			what = fmt.Sprintf("not allowed to watch %d kinds, which are not recorded", n)
		}
		log.Warn(what+": grant get, list and watch (tattler rbac prints the roles), or exclude them", "kinds", kindsOf(r.Forbidden), "error", r.Forbidden[0].Err)
	}
	because := map[string][]capture.Refusal{}
	for _, f := range r.Failing {
		reason := cluster.Explain(f.Err).Error()
		because[reason] = append(because[reason], f)
	}
	for _, reason := range slices.Sorted(maps.Keys(because)) {
		what := "1 kind cannot be watched now and will be retried"
		if n := len(because[reason]); n > 1 {
			what = fmt.Sprintf("%d kinds cannot be watched now and will be retried", n)
		}
		log.Warn(what, "kinds", kindsOf(because[reason]), "error", reason)
	}
}

// kindsOf names kinds; if a kind is watched in other namespaces, with the refused ones.
func kindsOf(refused []capture.Refusal) string {
	var all []string
	for _, f := range refused {
		name := f.Resource.GroupResource()
		if len(f.Namespaces) > 0 {
			name += " (in " + strings.Join(f.Namespaces, ", ") + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// explain adds what a user can do about a failed start.
func explain(err error, cluster *kube.Cluster) error {
	var locked *journal.LockedError
	var format *journal.FormatError
	var network *journal.NetworkError
	var damaged *journal.DamagedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damaged):
		return fmt.Errorf("%w; restore a backup with tattler journal restore FILE, or choose another file with --journal", err)
	case errors.As(err, &network):
		return fmt.Errorf("%w; choose a local disk or a block volume with --journal, or set journal.network: true where nothing starts a second daemon", err)
	case errors.As(err, &format):
		return fmt.Errorf("%w; otherwise choose another file with --journal", err)
	case errors.As(err, &locked):
		return fmt.Errorf("%w; end it, or choose another file with --journal", err)
	case errors.Is(err, os.ErrPermission):
		return err
	}
	if cluster == nil {
		return err
	}
	return cluster.ExplainStart(err)
}
