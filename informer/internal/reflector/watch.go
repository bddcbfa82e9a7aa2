package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A frame that cannot be read twice may have been a deletion. If not even the object's name is known, the stream
// lists at once, and reads nothing behind the frame before that, so that a restart begins before it. If the name is
// known, the version is skipped: until the object is read again, its batches have no version (store.Change.Unread),
// and a restart lists.

// watching is one open watch stream.
type watching struct {
	*Reflector
	*tally
	asked  time.Time       // when it was requested
	ctx    context.Context // of the request; its cause is the reason if we canceled it
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	frames wire.Watch
	end    *time.Timer // fires when the server should have ended the watch
	alarm  *time.Timer // fires when the stream has been silent for too long; nil before the watch begins
	before int         // number of frames that belonged to a list
}

// watch opens a watch and reads it to its end.
func (r *Reflector) watch(ctx context.Context) Input {
	if err := r.catchUp(r.Sink.Version()); err != nil {
		return classify(err)
	}
	r.saw(r.Sink.Version())
	w, err := r.open(ctx, &tally{}, r.life(), "resourceVersion", r.Sink.Version())
	if err != nil {
		return classify(err)
	}
	defer w.close()
	if r.m.throttled {
		if in, _ := r.behind(ctx); in.Event != Alike {
			return in
		}
	}
	r.input(Input{Event: Accepted})
	return w.follow(0)
}

// life returns the requested duration of a watch in seconds. API servers send a bookmark 2 s before the end,
// unless the watch begins within those 2 s: it shows the position of a stream that resumes. The second watch is
// longer, for a server under load.
//
// Source: k8s.io/apiserver/pkg/storage/cacher, nextBookmarkTime.
func (r *Reflector) life() int {
	if r.m.Resuming {
		return 3 + 5*r.m.laps
	}
	return 300 + rand.IntN(300)
}

// open requests a watch stream and counts its bytes in t.
func (r *Reflector) open(ctx context.Context, t *tally, seconds int, pairs ...string) (*watching, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(answerTimeout, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	asked := time.Now()
	pairs = append(pairs, "watch", "true", "allowWatchBookmarks", "true", "timeoutSeconds", strconv.Itoa(seconds))
	body, format, err := r.Open(ctx, true, r.query(pairs...))
	if err != nil {
		err = cause(ctx, err)
		cancel(nil)
		return nil, err
	}
	t.Format = format
	w := &watching{Reflector: r, tally: t, asked: asked, ctx: ctx, cancel: cancel, body: body}
	w.frames = wire.NewWatch(format, &meter{body, t})
	w.end = time.AfterFunc(time.Duration(seconds)*time.Second+overdue, func() { cancel(errOverdue) })
	r.interrupter.cancel.Store(&cancel)
	return w, nil
}

func (w *watching) close() {
	w.interrupter.cancel.Store(nil)
	w.end.Stop()
	w.cancel(nil)
	_ = w.body.Close()
}

// next reads a frame. If we canceled the stream, the error is the reason.
func (w *watching) next() (wire.Event, error) {
	ev, err := w.frames.Next()
	if err != nil {
		err = cause(w.ctx, err)
	}
	if wire.Unreadable(err) {
		w.note(Note{Kind: NotedUnreadable, Err: err})
	}
	return ev, err
}

// follow passes on events until the stream ends or a step requires another action. frames were read already.
func (w *watching) follow(frames int) (in Input) {
	*w.tally = *w.start(Note{Kind: NotedWatchOpened, Format: w.Format})
	w.Objects, w.before = frames, frames
	w.alarm = time.AfterFunc(silence, func() { w.cancel(errSilent) })
	defer w.alarm.Stop()
	if !w.bookmarks {
		w.alarm.Stop()
	}
	in = w.read()
	w.progress()
	err := in.Err
	if in.Event == Closed {
		err = nil
	}
	w.finish(w.tally, NotedWatchClosed, err)
	return in
}

func (w *watching) read() Input {
	for {
		ev, err := w.next()
		if err == nil {
			err = w.refused()
		}
		switch {
		case errors.Is(err, io.EOF):
			in := w.closed()
			if !w.m.Resuming && !(in.Silent && in.Short) { // that one may have been ended before anything was sent
				w.Sink.Current()
			}
			return in
		case errors.Is(err, errOverdue):
			return w.closed()
		case errors.Is(err, ErrStalled):
			return Input{Event: Closed, Stalled: true}
		case wire.Unreadable(err):
			in := Input{Event: Garbled, Err: err, Short: w.short(), Known: ev.Name != ""}
			if w.m.garbled == 0 || !in.Known {
				return in // the connection may be to blame, and it is unknown what is missing
			}
			w.input(in)
			w.saw(ev.ResourceVersion)
			if ev.Type != wire.Deleted {
				w.Sink.Skipped(ev.Meta)
				continue
			} // a deletion needs only the metadata
		case err != nil:
			return classify(fmt.Errorf("read watch: %w", err))
		case ev.Type == wire.Error:
			return classify(status(ev.Format, ev.Raw))
		}
		if err := w.event(ev); err != nil {
			return classify(err)
		}
	}
}

// refused returns why a frame must not be passed on, or nil. The frame may have been read before the watch was interrupted,
// which a stall does before it is over.
func (w *watching) refused() error {
	if w.Stalled != nil && w.Stalled(w.asked) {
		return ErrStalled
	}
	return context.Cause(w.ctx)
}

func (w *watching) event(ev wire.Event) error {
	w.Objects++
	w.saw(ev.ResourceVersion)
	var err error
	switch {
	case ev.Type != wire.Bookmark:
		err = w.Sink.Event(ev)
	case isVersion(ev.ResourceVersion):
		w.bookmarks = true
		err = w.Sink.Bookmark(ev.ResourceVersion)
	default: // it shows no position
		return nil
	}
	if err == nil {
		err = w.catchUp(ev.ResourceVersion)
	}
	if err == nil {
		err = w.endHistoryCheck(ev.ResourceVersion)
	}
	if err != nil {
		return err
	}
	if w.bookmarks {
		w.alarm.Reset(silence)
	}
	w.progress()
	return nil
}

// endHistoryCheck ends a pending history check once everything up to its version was seen.
func (r *Reflector) endHistoryCheck(version string) error {
	if r.until == "" || r.m.Resuming || !reached(version, r.until) {
		return nil
	}
	r.until = ""
	return r.Sink.HistoryChecked()
}

// progress reports that the watch works, if that is news.
func (w *watching) progress() {
	m, lasts := &w.m, time.Since(w.began) >= lasting
	if w.Objects > w.before && (m.garbled > 0 || m.denied > 0 || m.suspect || lasts && (m.Attempts > 0 || m.relists > 0)) {
		w.input(Input{Event: Progress, Lasting: lasts})
	}
}

// closed is the input after a watch that the server closed between two frames, or should have: not a failure.
func (w *watching) closed() Input {
	in := Input{Event: Closed, Silent: w.Objects == 0, Short: w.short()}
	if in.Short {
		in.Err = errShort
	}
	return in
}

func (w *watching) short() bool { return time.Since(w.began) < short }

// catchUp reports CaughtUp if a loaded state is being resumed and everything up to its goal was seen.
func (r *Reflector) catchUp(version string) error {
	if !r.m.Resuming || !reached(version, r.goal) {
		return nil
	}
	if err := r.Sink.CaughtUp(version); err != nil {
		return err
	}
	r.input(Input{Event: CaughtUp})
	return nil
}
