package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/quiet"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/capture/rules"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Options say what a daemon does.
type Options struct {
	// Config reaches the API server. Cluster is its name in events; a journal keeps the one that it was
	// made with.
	Config  *rest.Config
	Cluster string
	Scopes  []capture.Scope
	// Journal and Key are files; see LoadKey.
	Journal, Key string
	Retention    journal.Retention
	// Quiet and Redact are the user's rules, beside the built-in ones.
	Quiet, Redact []rules.Rule
	// Sinks are what is delivered to; their Store is the daemon's to set.
	Sinks []deliver.Options
	// Text writes a change for people, for sinks that show it; nil: they write what they can.
	Text func(io.Writer, change.Change) error
	Log  *slog.Logger
	// Tell, if set, hears what the watcher tells beside changes. It must not block.
	Tell func(capture.Message)
}

// daemon is a running daemon.
type daemon struct {
	o        Options
	journal  *journal.Journal
	reader   *journal.Reader
	redactor *redact.Redactor
	rules    *quiet.Set
	pumps    []*deliver.Pump
}

// Run records and delivers until ctx ends, then drains the sinks, each for as long as its options say,
// and returns nil. It returns an error where it cannot start: options are wrong, another daemon has the
// journal, the API server does not answer. After the start, what fails is tried again.
func Run(ctx context.Context, o Options) (err error) {
	d, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	for _, p := range d.pumps {
		if err := p.Prepare(ctx); err != nil {
			return fmt.Errorf("prepare sinks: %w", err)
		}
	}
	delivering, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var pumps sync.WaitGroup
	for _, p := range d.pumps {
		pumps.Go(func() {
			if err := p.Run(delivering); err != nil {
				d.o.Log.Error("closing a sink failed", "err", err)
			}
		})
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { d.retain(ctx) })
	err = d.capture(ctx)
	stop()
	pumps.Wait()
	keeping.Wait()
	return err
}

// open opens what a daemon needs, and leaves nothing open on an error.
func open(ctx context.Context, o Options) (d *daemon, err error) {
	d = &daemon{o: o}
	if o.Log == nil {
		d.o.Log = slog.New(slog.DiscardHandler)
	}
	key, err := LoadKey(o.Key)
	if err != nil {
		return nil, err
	}
	if d.redactor, err = redact.New(key, o.Redact); err != nil {
		return nil, err
	}
	if d.rules, err = quiet.New(quiet.Rules{Quiet: o.Quiet}); err != nil {
		return nil, err
	}
	if d.journal, err = journal.Open(ctx, o.Journal, journal.Options{Cluster: o.Cluster}); err != nil {
		return nil, err
	}
	if d.reader, err = journal.OpenReader(ctx, o.Journal); err != nil {
		return nil, errors.Join(err, d.journal.Close())
	}
	if err := d.openPumps(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// openPumps makes a pump for each sink, paused where it was.
func (d *daemon) openPumps(ctx context.Context) error {
	known, err := d.journal.Sinks(ctx)
	if err != nil {
		return fmt.Errorf("read sinks of the journal: %w", err)
	}
	paused := map[string]bool{}
	for _, s := range known {
		paused[s.Name] = s.Paused
	}
	store := &outbox{d.journal, d.reader, history.New(d.reader, d.rules), d.o.Text}
	for _, o := range d.o.Sinks {
		o.Store, o.Log = store, d.o.Log
		o.Paused = o.Paused || paused[o.Name]
		p, err := deliver.New(o)
		if err != nil {
			return fmt.Errorf("sink %s: %w", o.Name, err)
		}
		d.pumps = append(d.pumps, p)
	}
	return nil
}

func (d *daemon) close() error { return errors.Join(d.reader.Close(), d.journal.Close()) }

// Waits between attempts to go on after the journal could not be written.
const (
	firstWait = time.Second
	lastWait  = 30 * time.Second
)

// capture watches until ctx ends. After the journal could not be written it watches anew, from what
// is written.
func (d *daemon) capture(ctx context.Context) error {
	wait, started := firstWait, false
	for ctx.Err() == nil {
		began := time.Now()
		unwritten, err := d.watch(ctx)
		started = started || unwritten != nil
		switch {
		case ctx.Err() != nil: // the end on request
			continue
		case !started:
			return err
		}
		d.o.Log.Error("changes cannot be recorded; they will be asked for again", "err", errors.Join(unwritten, err), "in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if wait = min(2*wait, lastWait); time.Since(began) > 2*lastWait {
			wait = firstWait
		}
	}
	return nil
}

// watch records what one watcher tells. Unwritten is why the journal could not be written, which ended
// it; err why there is nothing to watch.
func (d *daemon) watch(ctx context.Context) (unwritten, err error) {
	k, err := newKept(ctx, d.journal, d.o.Log)
	if err != nil {
		return nil, err
	}
	w, err := capture.New(capture.Options{
		Config: d.o.Config, Scopes: d.o.Scopes, Redactor: d.redactor, Quiet: d.rules, Kept: k,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rec := &recorder{journal: d.journal, tell: d.tell}
	var recording sync.WaitGroup
	recording.Go(func() {
		// What came before the end is written, too.
		rec.run(context.WithoutCancel(ctx), w.Messages(), func(err error) {
			unwritten = err
			cancel()
		})
	})
	err = w.Run(ctx)
	recording.Wait()
	return unwritten, err
}

func (d *daemon) tell(m capture.Message) {
	if m.Problem != nil {
		d.o.Log.Warn("watch", "problem", m.Problem)
	}
	if d.o.Tell != nil {
		d.o.Tell(m)
	}
}

// retainEvery is how often what is too old is removed.
const retainEvery = time.Minute

// retain keeps the journal within its bounds, until ctx ends. A sink that is further behind than changes
// are kept does not hold them: the disk would fill for one dead receiver.
func (d *daemon) retain(ctx context.Context) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := d.forget(ctx, now); err != nil && ctx.Err() == nil {
				d.o.Log.Error("removing old changes failed", "err", err)
			}
		}
	}
}

// forget removes what is too old, and says what that takes from sinks.
func (d *daemon) forget(ctx context.Context, now time.Time) error {
	last, err := d.journal.Last(ctx)
	if err != nil {
		return err
	}
	done, err := d.journal.Retain(ctx, now, d.o.Retention, last)
	if err != nil || done.Removed == 0 {
		return err
	}
	first, err := d.first(ctx)
	if err != nil {
		return err
	}
	for _, o := range d.o.Sinks {
		cursor, ok, err := d.journal.Cursor(ctx, o.Name)
		if err != nil {
			return err
		}
		if ok && cursor+1 < first {
			d.o.Log.Error("a sink was too far behind: changes are removed that it did not get",
				"sink", o.Name, "after", cursor, "before", first)
		}
	}
	return nil
}

// first is the sequence number of the oldest change that is kept; one more than the last where none is.
func (d *daemon) first(ctx context.Context) (int64, error) {
	for e, err := range d.reader.Rows(ctx, journal.Query{Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}) {
		return e.Seq, err
	}
	last, err := d.journal.Last(ctx)
	return last + 1, err
}
