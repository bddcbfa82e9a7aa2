package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/rights"
	"github.com/tattler-dev/tattler/internal/rules"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/trace"
)

// Options configure a daemon.
type Options struct {
	// Config reaches the API server. Cluster is its name in events; a journal keeps the name that it was
	// created with.
	Config  *rest.Config
	Cluster string
	Scopes  []capture.Scope
	// Begin, if set, checks what must be known before anything is opened, and returns the name of the cluster, which
	// replaces Cluster. It is called again while it fails because the API server is away.
	Begin func(ctx context.Context) (cluster string, err error)
	// Explain completes an error of the cluster for people; nil leaves errors as they are.
	Explain func(error) error
	// Clusters, if any, are several clusters to record instead: they replace Config, Cluster, Scopes, Explain, Rights and OnMessage. The
	// first one names a new journal.
	Clusters []Cluster
	// Journal and Key are files; see LoadKey. Network permits a journal on a network file system.
	Journal, Key string
	Network      bool
	Retention    journal.Retention
	// Rights are rights that the daemon needs beside those to watch, such as those of a web page.
	Rights []rights.Right
	// Quiet and Redact are the user's rules, beside the built-in ones.
	Quiet, Redact []rules.Rule
	// Sinks are the destinations. The daemon sets their Store. Paused applies to a sink that the journal does
	// not know; for others, the journal has the state.
	Sinks []deliver.Options
	// Open, if set, opens the sinks' outputs once this daemon has the journal: before that, another daemon may
	// be writing to them.
	Open func() error
	// Text writes a change for people, for sinks that show it; if nil, they use their own form.
	Text func(io.Writer, change.Change) error
	// Story adds a change to the story of its object, for sinks that narrate; if nil, they use their own form.
	// See sink.Message.
	Story func(so sink.Story, sent bool, c change.Change) sink.Story
	Log   *slog.Logger
	// OnMessage, if set, receives the watcher's messages other than changes. It must not block.
	OnMessage func(capture.Message)
	// Serve, if set, serves the daemon's state in addition to the socket beside the journal. It runs from
	// before the journal is opened, which can take minutes (see control.Status.Starting), until its context
	// ends, after everything else. An error of it ends the daemon.
	Serve func(ctx context.Context, status func(context.Context) (control.Status, error)) error
	// TakeOrders, if set, receives what carries out orders about the sinks, once the daemon takes them. The orders are
	// logged with control.GivenBy.
	TakeOrders func(control.Orders)
	// PageRefusals, if set, returns control.Status.PageRefusals.
	PageRefusals func() []control.PageRefusal
	// Traces, if set, exports a trace of each change. The daemon runs it.
	Traces *trace.Exporter
	// Announce is a directory in which the daemon announces itself while it serves its socket; empty: nowhere.
	// See control.Announce.
	Announce string

	listen  func(journal string) (net.Listener, error) // nil: control.Listen; tests have one in memory
	wall    func() time.Time                           // nil: time.Now; tests make it jump
	reserve int64                                      // 0: journal.DefaultReserve; tests have small disks
}

// daemon is a running daemon.
type daemon struct {
	o        Options
	journal  *journal.Journal
	reader   *journal.Reader
	stores   *stores          // of the pumps
	redactor *redact.Redactor // with no kinds of a cluster
	rules    *quiet.Set
	// recordings are those of o.Clusters, or of the only cluster; several says that o.Clusters is set.
	recordings []*recording
	several    bool
	identities identities
	pumps      []*deliver.Pump // of o.Sinks, in that order
	traces     *traces         // nil: none
	listener   net.Listener
	withdraw   func() error                  // the announcement, or nil
	audit      atomic.Pointer[control.Audit] // nil before the daemon takes orders
	overall    overall
	retainer   *retainer     // nil before the journal is open
	full       chan struct{} // receives an element once the disk is full
	states     int64         // bytes that the last states take in the journal
	crowded    bool          // they take half of its limit, which was logged
}

// Run records and delivers until ctx ends, then drains the sinks, each for as long as its options permit, and
// returns nil. Meanwhile it serves its state and takes orders at a socket beside the journal. It fails if it
// cannot start (options are wrong, another daemon has the journal, the API server refuses it) or if its
// state can no longer be served. A full disk and an API server that is away are waited for, and other failures after the
// start are retried.
func Run(ctx context.Context, o Options) (err error) {
	d := newDaemon(o)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := func() error { return nil }
	if d.o.Serve != nil {
		answered = serve(ctx, cancel, func(ctx context.Context) error { return d.o.Serve(ctx, d.status) })
	}
	if err := d.open(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = nil
		}
		return errors.Join(err, answered())
	}
	defer func() { err = errors.Join(err, d.close()) }()
	for _, p := range d.pumps {
		if err := d.patiently(ctx, func() error { return p.Prepare(ctx) }); err != nil {
			if err = fmt.Errorf("prepare sinks: %w", err); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				err = nil
			}
			return errors.Join(err, d.closeSinks(ctx), answered())
		}
	}
	obeyed := serve(ctx, cancel, d.serveSocket(d.takeOrders()))
	placed := serve(ctx, cancel, d.watchPlace)
	traced := func() error { return nil }
	if d.traces != nil {
		traced = serve(ctx, cancel, d.o.Traces.Run)
	}
	delivering, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var pumps sync.WaitGroup
	for _, p := range d.pumps {
		pumps.Go(func() {
			if err := p.Run(delivering); err != nil {
				d.o.Log.Error("closing a sink failed", "error", err)
			}
		})
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { d.retain(ctx) })
	keeping.Go(func() { d.reviewRights(ctx) })
	err = d.capture(ctx)
	cancel()
	stop()
	pumps.Wait()
	keeping.Wait()
	return errors.Join(err, traced(), obeyed(), placed(), answered())
}

// serve starts a server. end stops it and waits; broken is called if it fails before.
func serve(ctx context.Context, broken func(), run func(context.Context) error) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, 1)
	go func() {
		err := run(ctx)
		if err != nil {
			broken()
		}
		failed <- err
	}()
	return func() error {
		cancel()
		return <-failed
	}
}

// takeOrders makes orders possible.
func (d *daemon) takeOrders() *control.Audit {
	pumps := map[string]*deliver.Pump{}
	for i, p := range d.pumps {
		pumps[d.o.Sinks[i].Name] = p
	}
	orders := control.NewAudit(&sinkadmin.Admin{Journal: d.journal, Reader: d.reader, Pumps: pumps}, d.o.Log)
	d.audit.Store(orders)
	if d.o.TakeOrders != nil {
		d.o.TakeOrders(orders)
	}
	return orders
}

// serveSocket returns a function that serves the socket beside the journal.
func (d *daemon) serveSocket(orders control.Orders) func(context.Context) error {
	return func(ctx context.Context) error {
		return control.Serve(ctx, d.listener, control.Options{Status: d.status, Orders: orders, Log: d.o.Log})
	}
}

// newDaemon returns a daemon with nothing open.
func newDaemon(o Options) *daemon {
	d := &daemon{o: o, full: make(chan struct{}, 1)}
	d.overall.started, d.overall.starting = time.Now(), "opening the journal"
	if o.Log == nil {
		d.o.Log = slog.New(slog.DiscardHandler)
	}
	if o.listen == nil {
		d.o.listen = control.Listen
	}
	if o.reserve == 0 {
		d.o.reserve = journal.DefaultReserve
	}
	if o.wall == nil {
		d.o.wall = func() time.Time { return time.Now().Round(0) }
	}
	if len(o.Clusters) > 0 {
		d.o.Cluster = o.Clusters[0].Name
	}
	d.overall.names(d.o.Cluster)
	d.newRecordings()
	return d
}

// open opens what a daemon needs; after an error, nothing stays open.
func (d *daemon) open(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	var key []byte
	err := d.patiently(ctx, func() (err error) {
		key, err = LoadKey(d.o.Key)
		return err
	})
	if err != nil {
		return err
	}
	if d.redactor, err = redact.New(key, d.o.Redact); err != nil {
		return err
	}
	if d.rules, err = quiet.New(quiet.Rules{Quiet: d.o.Quiet}); err != nil {
		return err
	}
	if err := d.patiently(ctx, func() error { return d.openJournal(ctx) }); err != nil {
		return err
	}
	d.retainer = d.newRetainer(ctx)
	if err := d.openRecordings(ctx); err != nil {
		return errors.Join(err, d.close())
	}
	if err := d.openBeside(ctx); err != nil {
		return errors.Join(err, d.closeSinks(ctx), d.close())
	}
	d.overall.starts("")
	return nil
}

// begin runs Options.Begin.
func (d *daemon) begin(ctx context.Context) error {
	if d.o.Begin == nil {
		return nil
	}
	return d.patiently(ctx, func() error {
		name, err := d.o.Begin(ctx)
		if err == nil {
			d.o.Cluster, d.recordings[0].Name = name, name
			d.overall.names(name)
		}
		return err
	})
}

// openJournal opens the journal.
func (d *daemon) openJournal(ctx context.Context) (err error) {
	d.journal, err = journal.Open(ctx, d.o.Journal, journal.Options{
		Cluster: d.o.Cluster, LocalOnly: !d.o.Network, Reserve: d.o.reserve,
		PerhapsNetwork: func(fileSystem string) {
			d.o.Log.Warn("the journal's file system may be a network one: make sure that no second daemon writes it, and set journal.network: true",
				"journal", d.o.Journal, "file system", fileSystem)
		},
	})
	return err
}

// openBeside opens everything that needs the journal.
func (d *daemon) openBeside(ctx context.Context) error {
	for _, step := range []func() error{
		func() (err error) {
			d.reader, err = journal.OpenReader(ctx, d.journal.Path())
			return err
		},
		func() error { return d.noteRules(ctx) },
		func() error {
			if d.o.Open == nil {
				return nil
			}
			return d.o.Open()
		},
	} {
		if err := d.patiently(ctx, step); err != nil {
			return err
		}
	}
	if err := d.openPumps(ctx); err != nil {
		return err
	}
	err := d.patiently(ctx, func() (err error) {
		d.listener, err = d.o.listen(d.journal.Path())
		return err
	})
	if err != nil || d.o.Announce == "" {
		return err
	}
	var announced error
	if d.withdraw, announced = control.Announce(ctx, d.o.Announce, d.journal.Path()); announced != nil {
		d.o.Log.Debug("commands without a journal argument do not find this daemon", "error", announced)
	}
	return nil
}

// close closes everything. The journal goes last, because its lock means that the socket is served.
func (d *daemon) close() error {
	var errs []error
	if d.withdraw != nil {
		errs = append(errs, d.withdraw())
	}
	if d.listener != nil {
		_ = d.listener.Close() // closed already, unless it was never served
		errs = append(errs, control.Remove(d.journal.Path()))
	}
	if d.stores != nil {
		errs = append(errs, d.stores.close())
	}
	if d.reader != nil {
		errs = append(errs, d.reader.Close())
	}
	return errors.Join(append(errs, d.journal.Close())...)
}

// closeSinks closes the sinks if no pump gets to do it.
func (d *daemon) closeSinks(ctx context.Context) error {
	var errs []error
	for _, o := range d.o.Sinks {
		if o.Sink != nil {
			errs = append(errs, o.Sink.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// openPumps creates a pump for each sink, paused if it was paused before.
func (d *daemon) openPumps(ctx context.Context) error {
	all, err := d.journal.Sinks(ctx)
	if err != nil {
		return fmt.Errorf("read sinks of the journal: %w", err)
	}
	known := map[string]journal.Sink{}
	for _, s := range all {
		known[s.Name] = s
	}
	d.traces = newTraces(d.o.Traces, d.journal.Cluster(), d.o.Sinks)
	err = d.patiently(ctx, func() (err error) {
		d.stores, err = openStores(ctx, d.journal, d.rules, &d.o)
		return err
	})
	if err != nil {
		return err
	}
	for i, o := range d.o.Sinks {
		k, ok := known[o.Name]
		delete(known, o.Name)
		if err := d.startPaused(ctx, &o, k, ok); err != nil {
			return err
		}
		o.Store, o.Log = d.stores.outboxes[i], d.o.Log
		if d.traces != nil {
			o.Traces = &sinkTraces{traces: d.traces, sink: o.Name}
		}
		p, err := deliver.New(o)
		if err != nil {
			return fmt.Errorf("sink %s: %w", o.Name, err)
		}
		d.pumps = append(d.pumps, p)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		d.o.Log.Warn("a sink is no longer configured; the journal keeps its cursor until tattler sinks remove drops it", "sink", name)
	}
	return nil
}

// startPaused decides whether a sink starts paused. The configuration applies to a sink that the journal does
// not know yet; the journal then stores it like a tattler sinks pause.
func (d *daemon) startPaused(ctx context.Context, o *deliver.Options, kept journal.Sink, known bool) error {
	switch {
	case known && o.Paused && !kept.Paused:
		d.o.Log.Warn("ignoring paused in the configuration, which is for new sinks: use tattler sinks pause", "sink", o.Name)
	case !known && o.Paused && o.Name != "":
		if err := d.patiently(ctx, func() error { return d.journal.Pause(ctx, o.Name, true) }); err != nil {
			return fmt.Errorf("pause sink %s: %w", o.Name, err)
		}
		return nil
	}
	if known {
		o.Paused = kept.Paused
	}
	return nil
}
