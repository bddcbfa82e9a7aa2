package daemon

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"sync"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink"
)

// outbox adapts the journal to a pump.
type outbox struct {
	journal *journal.Journal
	reader  *journal.Reader // the pump's own: pumps do not wait for each other
	shelf   *shelf
	tell    *history.Builder
	lean    bool                                                       // the sink does not need the objects of updates
	text    func(io.Writer, change.Change) error                       // nil: sinks use their own form
	story   func(so sink.Story, sent bool, c change.Change) sink.Story // nil: sinks use their own words
	log     *slog.Logger
}

// Read implements deliver.Store.
func (o *outbox) Read(ctx context.Context, after int64) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		last, err := o.journal.Last(ctx) // before reading, so that later changes are not skipped
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

// item builds the item of an entry. Damaged content is reported in the item; an error is temporary.
func (o *outbox) item(ctx context.Context, e *journal.Entry) (it deliver.Item, err error) {
	it.Seq = e.Seq
	if e.Quiet {
		return it, nil
	}
	before, after, err := e.Contents(ctx)
	var damage *journal.DamagedError
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return it, nil // retention was faster
	case errors.As(err, &damage):
		it.Err = err
	case errors.Is(err, journal.ErrPurged): // the change says so itself
	case err != nil:
		return it, err
	}
	c, decoded, err := o.tell.Make(ctx, e, before, after, o.lean)
	if it.Err == nil {
		it.Err = err
	}
	cluster := o.reader.Cluster()
	it.Change, it.Size = &c, decodedGrowth*decoded
	it.Event = sync.OnceValue(func() *event.Event {
		e := change.Whole(cluster, &c)
		return &e
	})
	it.JSON = sync.OnceValues(func() ([]byte, error) { return it.Event().MarshalJSON() })
	if o.lean && e.Op.Differs() { // the objects were purged
		it.Size = 1<<10 + changesSize(c.Fields)
	}
	if o.text != nil && !o.lean && it.Err == nil {
		it.Text = func(w io.Writer) error { return o.text(w, c) }
	}
	if o.story != nil && !o.lean && it.Err == nil {
		it.Story = func(so sink.Story, sent bool) sink.Story { return o.story(so, sent, c) }
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
	displaced, err := o.journal.Skip(ctx, letter(d), cursor)
	o.pushedOut(d.Sink, displaced)
	return err
}

func letter(d deliver.DeadLetter) journal.DeadLetter {
	return journal.DeadLetter{Sink: d.Sink, Seq: d.Seq, ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, At: d.At}
}

// pushedOut logs that older dead letters were lost.
func (o *outbox) pushedOut(sink string, pushed int64) {
	if pushed > 0 {
		o.log.Error("too many dead letters: the sink's oldest are lost", "sink", sink, "lost", pushed, "kept", journal.MaxDeadLetters)
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
