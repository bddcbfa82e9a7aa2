package daemon

import (
	"context"
	"iter"
	"log/slog"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
)

// outbox adapts the journal to a pump.
type outbox struct {
	*journal.Journal
	reader *journal.Reader // the pump's own: pumps do not wait for each other
	shelf  *shelf
	maker  *maker
	log    *slog.Logger
}

// Read implements deliver.Store. A pump that keeps up takes what was just recorded, also if retention has removed it since.
func (o *outbox) Read(ctx context.Context, after int64) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		last, err := o.Last(ctx) // before reading, so that later changes are not skipped
		if err != nil {
			yield(deliver.Item{}, err)
			return
		}
		seen := after
		for ; seen < last; seen++ {
			it, ok := o.shelf.ready(ctx, seen+1)
			if !ok {
				break
			}
			if !yield(it, nil) {
				return
			}
		}
		if seen == last {
			return
		}
		q := journal.Query{After: seen, Quiet: true, Snapshots: true, OldestFirst: true}
		for e, err := range o.reader.Rows(ctx, q) {
			if err != nil {
				yield(deliver.Item{}, err)
				return
			}
			it, err := o.shelf.item(ctx, e.Seq, func() (deliver.Item, error) { return o.maker.entry(ctx, &e) })
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

// Wait implements deliver.Store.
func (o *outbox) Wait(ctx context.Context, after int64) error {
	for {
		changed := o.Changed()
		last, err := o.Last(ctx)
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

// SetAside implements deliver.Store.
func (o *outbox) SetAside(ctx context.Context, d deliver.DeadLetter) error {
	pushed, err := o.Journal.SetAside(ctx, letter(d))
	o.pushedOut(d.Sink, pushed)
	return err
}

// Skip implements deliver.Store.
func (o *outbox) Skip(ctx context.Context, d deliver.DeadLetter, cursor int64) error {
	displaced, err := o.Journal.Skip(ctx, letter(d), cursor)
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
		all, err := o.Journal.DeadLetters(ctx, sink)
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
	return o.DropDeadLetters(ctx, d.Sink, d.Seq)
}

var _ deliver.Store = (*outbox)(nil)
