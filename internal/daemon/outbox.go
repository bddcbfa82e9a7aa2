package daemon

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"sync"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink"
)

// outbox shows the journal to a pump.
type outbox struct {
	journal *journal.Journal
	reader  *journal.Reader // the pump's own: pumps do not wait for each other
	shelf   *shelf
	tell    *history.Teller
	lean    bool                                                       // the sink needs no objects of updates
	text    func(io.Writer, change.Change) error                       // nil: sinks write what they can
	story   func(so sink.Story, told bool, c change.Change) sink.Story // nil: sinks narrate in their own words
	log     *slog.Logger
}

// Read implements deliver.Store.
func (o *outbox) Read(ctx context.Context, after int64) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		last, err := o.journal.Last(ctx) // before reading: what comes meanwhile is not passed over
		if err != nil {
			yield(deliver.Item{}, err)
			return
		}
		seen := after
		q := journal.Query{After: after, Quiet: true, Snapshots: true, OldestFirst: true}
		for e, err := range o.reader.Rows(ctx, q) {
			if err != nil {
				yield(deliver.Item{}, err)
				return
			}
			it, err := o.shelf.item(ctx, e.Seq, func() (deliver.Item, error) { return o.item(ctx, &e) })
			if !yield(it, err) || err != nil {
				return
			}
			seen = e.Seq
		}
		if seen < last { // retention has removed the newest
			yield(deliver.Item{Seq: last}, nil)
		}
	}
}

// item makes what is delivered of an entry. That its content is damaged stands in the item; an error
// is one that may pass.
func (o *outbox) item(ctx context.Context, e *journal.Entry) (it deliver.Item, err error) {
	it.Seq = e.Seq
	if e.Quiet {
		return it, nil
	}
	before, after, err := e.Contents(ctx)
	var damage *journal.DamagedError
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return it, nil // retention was quicker
	case errors.As(err, &damage):
		it.Err = err
	case errors.Is(err, journal.ErrPurged): // the change says so
	case err != nil:
		return it, err
	}
	c, decoded, err := o.tell.Make(ctx, e, before, after, o.lean)
	if it.Err == nil {
		it.Err = err
	}
	ev := change.Event(o.reader.Cluster(), &c)
	if e.Op.Differs() {
		ev.Data.Before, ev.Data.After = c.Before, c.After
	}
	it.Event, it.JSON, it.Size = &ev, sync.OnceValues(ev.MarshalJSON), decodedGrowth*decoded
	if o.lean && e.Op.Differs() { // the objects are gone
		it.Size = 1<<10 + changesSize(ev.Data.Changes)
	}
	if o.text != nil && !o.lean && it.Err == nil {
		it.Text = func(w io.Writer) error { return o.text(w, c) }
	}
	if o.story != nil && !o.lean && it.Err == nil {
		it.Story = func(so sink.Story, told bool) sink.Story { return o.story(so, told, c) }
	}
	return it, nil
}

// Wait implements deliver.Store.
func (o *outbox) Wait(ctx context.Context, after int64) error {
	for {
		changed := o.journal.Changed()
		last, err := o.journal.Last(ctx)
		if err != nil || last > after {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Last implements deliver.Store.
func (o *outbox) Last(ctx context.Context) (int64, error) { return o.journal.Last(ctx) }

// Cursor implements deliver.Store.
func (o *outbox) Cursor(ctx context.Context, sink string) (int64, bool, error) {
	return o.journal.Cursor(ctx, sink)
}

// SetCursor implements deliver.Store.
func (o *outbox) SetCursor(ctx context.Context, sink string, seq int64) error {
	return o.journal.SetCursor(ctx, sink, seq)
}

// Rewind implements deliver.Store.
func (o *outbox) Rewind(ctx context.Context, sink string, seq int64) error {
	return o.journal.Rewind(ctx, sink, seq)
}

// Repeats implements deliver.Store.
func (o *outbox) Repeats(ctx context.Context, sink string) (int64, error) {
	return o.journal.Repeats(ctx, sink)
}

// SetAside implements deliver.Store.
func (o *outbox) SetAside(ctx context.Context, d deliver.DeadLetter) error {
	pushed, err := o.journal.SetAside(ctx, letter(d))
	o.pushedOut(d.Sink, pushed)
	return err
}

// Skip implements deliver.Store.
func (o *outbox) Skip(ctx context.Context, d deliver.DeadLetter, cursor int64) error {
	pushed, err := o.journal.Skip(ctx, letter(d), cursor)
	o.pushedOut(d.Sink, pushed)
	return err
}

func letter(d deliver.DeadLetter) journal.DeadLetter {
	return journal.DeadLetter{Sink: d.Sink, Seq: d.Seq, ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, At: d.At}
}

// pushedOut logs that older dead letters are lost.
func (o *outbox) pushedOut(sink string, pushed int64) {
	if pushed > 0 {
		o.log.Error("a sink has more dead letters than are kept: the oldest are lost", "sink", sink, "lost", pushed, "kept", journal.MaxDeadLetters)
	}
}

// DeadLetters implements deliver.Store.
func (o *outbox) DeadLetters(ctx context.Context, sink string) iter.Seq2[deliver.DeadLetter, error] {
	return func(yield func(deliver.DeadLetter, error) bool) {
		all, err := o.journal.DeadLetters(ctx, sink)
		if err != nil {
			yield(deliver.DeadLetter{}, err)
			return
		}
		for _, d := range all {
			letter := deliver.DeadLetter{Sink: d.Sink, Seq: d.Seq, ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, At: d.At}
			if !yield(letter, nil) {
				return
			}
		}
	}
}

// DropDeadLetter implements deliver.Store.
func (o *outbox) DropDeadLetter(ctx context.Context, d deliver.DeadLetter) error {
	return o.journal.DropDeadLetters(ctx, d.Sink, d.Seq)
}

var _ deliver.Store = (*outbox)(nil)
