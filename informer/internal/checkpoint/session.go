package checkpoint

import (
	"context"
	"errors"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// errGarbage reports that a file exceeds the garbage limit.
var errGarbage = errors.New("most of the file is garbage")

// errRemoved reports that someone removed the file, or put another one in its place.
var errRemoved = errors.New("the file was removed")

// lookEvery is how often the file is looked for.
const lookEvery = 10 * time.Second

// subscribeError is an error of Options.Subscribe.
type subscribeError struct{ error }

// session writes one file from one subscription.
type session struct {
	*writer
	stream *Stream
	opts   *Options
	queue  Queue

	placed bool // the file has its final name
	// current is set once the file held a state that the server had during this session.
	current bool
	epoch   int64     // of the last batch
	at      time.Time // when its state was last known to be the server's
	due     time.Time // when the pending data must be durable; zero if nothing is pending
	look    time.Time // when to look for the file
}

// write continues the loaded file or begins a new one. It returns nil when there is nothing left to write.
func (s *Stream) write(ctx context.Context, o *Options) error {
	q, err := o.Subscribe()
	if err != nil {
		return &subscribeError{err}
	}
	defer q.Close()
	t := &session{stream: s, opts: o, queue: q, look: time.Now().Add(lookEvery)}
	if err := t.begin(); err != nil {
		return err
	}
	defer t.f.Close()
	return t.run(ctx)
}

func (t *session) begin() error {
	s := t.stream
	if err := s.remove(s.file + unfinished); err != nil {
		return err
	}
	h := header{stream: s.name, fingerprint: t.opts.Fingerprint, identity: t.opts.Identity, created: time.Now()}
	if t.writer = s.resume(&h); t.writer != nil {
		t.placed = true
		return nil
	}
	f, err := s.dir.disk.Create(s.file + unfinished)
	if err != nil {
		return err
	}
	if t.writer, err = newWriter(f, s.maxBuffer, &h); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// resume opens the loaded file to continue it; nil if that is impossible.
func (s *Stream) resume(h *header) *writer {
	l := s.loaded
	s.loaded = nil
	if l == nil || !l.header.sameAs(h) {
		return nil
	}
	f, err := s.dir.disk.Append(s.file)
	if err != nil {
		return nil
	}
	if size, err := f.Size(); err != nil || size != l.end {
		_ = f.Close() // nothing was written
		return nil
	}
	return continued(f, s.maxBuffer, l)
}

func (t *session) run(ctx context.Context) error {
	for {
		ending := ctx.Err() != nil
		b, err := t.next(ctx)
		switch {
		case err == nil:
			if err := t.take(&b); err != nil {
				return err
			}
			if ending && b.Phase == store.Live {
				return t.end() // all earlier events were written
			}
		case ctx.Err() != nil && !ending:
			continue // there may still be a batch to take
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return t.end()
		}
		if !ending && !time.Now().Before(t.look) {
			if err := t.find(); err != nil {
				return err
			}
		}
		due := !t.due.IsZero() && !time.Now().Before(t.due)
		if due {
			if err := t.flush(); err != nil {
				return err
			}
		}
		if (due || !t.current) && t.wasteful() && ctx.Err() == nil {
			return errGarbage
		}
	}
}

// wasteful reports whether the file should be rewritten.
func (t *session) wasteful() bool {
	return t.size > t.stream.minFile && t.garbage() > 2*t.live
}

// next waits for the next batch, at most until a flush or a look is due.
func (t *session) next(ctx context.Context) (store.Batch, error) {
	until := t.look
	if !t.due.IsZero() && t.due.Before(until) {
		until = t.due
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return t.queue.Next(ctx)
}

// find makes sure that the file still exists under its name.
func (t *session) find() error {
	t.look = time.Now().Add(lookEvery)
	name := t.stream.file
	if !t.placed {
		name += unfinished
	}
	if there, err := t.stream.dir.disk.Has(name, t.f); err != nil || there {
		return err
	}
	return errRemoved
}

// take writes a batch. Only a live batch ends a transaction, because the state is then one that the server had.
// Batches in between wait for one, but not for long; see flush.
func (t *session) take(b *store.Batch) error {
	t.epoch, t.at = b.Epoch, b.Current
	if err := t.apply(b); err != nil {
		return err
	}
	switch {
	case b.Phase == store.Live:
		return t.commitLive(b)
	case t.stream.epoch != b.Epoch:
		return t.distrust()
	}
	t.dirty()
	return nil
}

// distrust ensures that the existing file, if any, is not resumed from: the server's history was replaced, or
// the file was never read.
func (t *session) distrust() error {
	if t.placed {
		return t.commitListing()
	}
	if err := t.stream.discard(); err != nil {
		return err
	}
	t.stream.epoch = t.epoch
	return nil
}

func (t *session) commitLive(b *store.Batch) error {
	if err := t.deleteUnseen(); err != nil {
		return err
	}
	t.stream.epoch = b.Epoch
	before := t.last
	head := store.Head{Epoch: b.Epoch, Phase: store.Live, Version: b.Version, Served: b.Served}
	if t.open > 0 || head != t.last {
		head.At = b.Current
		if err := t.commit(head); err != nil {
			return err
		}
	}
	switch {
	case !t.current:
		return t.becomeCurrent()
	case before.Phase != store.Live || before.Epoch != b.Epoch:
		return t.sync()
	}
	t.dirty()
	return nil
}

// becomeCurrent makes the first complete state durable and gives the file its final name.
func (t *session) becomeCurrent() error {
	if err := t.sync(); err != nil {
		return err
	}
	if !t.placed {
		s := t.stream
		if err := s.dir.disk.Rename(s.file+unfinished, s.file); err != nil {
			return err
		}
		if err := s.dir.disk.Sync(); err != nil {
			return err
		}
		t.placed = true
	}
	t.current = true
	t.opts.report(nil)
	return nil
}

func (t *session) commitListing() error {
	t.stream.epoch = t.epoch
	if err := t.commit(store.Head{Epoch: t.epoch, Phase: store.Listing, At: t.at}); err != nil {
		return err
	}
	return t.sync()
}

// dirty schedules a flush. Before the file is current, its first complete state makes everything durable.
func (t *session) dirty() {
	if t.due.IsZero() && t.current && t.size != t.durable {
		t.due = time.Now().Add(t.opts.SyncEvery)
	}
}

// flush makes everything durable. A transaction still open by then belongs to a long list, and is committed as
// listing.
func (t *session) flush() error {
	t.due = time.Time{}
	if t.current && t.open > 0 {
		return t.commitListing()
	}
	return t.sync()
}

// end makes the file as current as possible and removes a file that never became current.
func (t *session) end() error {
	if !t.placed {
		return t.stream.remove(t.stream.file + unfinished)
	}
	if !t.current {
		return nil // the loader drops everything after the last commit
	}
	return t.flush()
}
