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

// watch opens a watch and reads it to its end.
func (r *Reflector) watch(ctx context.Context) Input {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(answerTimeout, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	seconds := 300 + rand.IntN(300)
	end := time.AfterFunc(time.Duration(seconds)*time.Second+overdue, func() { cancel(errOverdue) })
	defer end.Stop()
	body, err := r.Open(ctx, r.query("watch", "true", "allowWatchBookmarks", "true",
		"resourceVersion", r.Sink.Version(), "timeoutSeconds", strconv.Itoa(seconds)))
	if err != nil {
		return classify(err)
	}
	defer func() { _ = body.Close() }()
	timer.Stop()
	r.input(Input{Event: Accepted})
	w := watching{Reflector: r, opened: time.Now()}
	w.alarm = time.AfterFunc(silence, func() { cancel(errSilent) })
	defer w.alarm.Stop()
	if !r.bookmarks {
		w.alarm.Stop()
	}
	return w.read(ctx, wire.NewWatch(body))
}

// watching is one open watch.
type watching struct {
	*Reflector
	opened time.Time
	alarm  *time.Timer // rings when the stream fell silent
	frames int
}

// read hands events on until the stream ends or something must change.
func (w *watching) read(ctx context.Context, frames *wire.Watch) Input {
	for {
		ev, err := frames.Next()
		if c := context.Cause(ctx); err != nil && c != nil {
			return w.ended(c)
		}
		switch {
		case errors.Is(err, io.EOF):
			return w.closed()
		case err != nil && !wire.Unreadable(err):
			return classify(fmt.Errorf("read watch: %w", err))
		case err != nil:
			in := Input{Event: Garbled, Err: err, Short: w.short()}
			if w.m.garbled == 0 {
				return in // the connection may be to blame
			}
			w.input(in)
			continue
		case ev.Type == wire.Error:
			return classify(status(ev.Raw))
		}
		w.event(ev)
	}
}

func (w *watching) event(ev wire.Event) {
	w.frames++
	if m := &w.m; m.Attempts > 0 || m.relists > 0 || m.garbled > 0 {
		w.input(Input{Event: Progress})
	}
	if ev.Type != wire.Bookmark {
		w.Sink.Event(ev)
	} else {
		w.bookmarks = true
		w.Sink.Bookmark(ev.ResourceVersion)
	}
	if w.bookmarks {
		w.alarm.Reset(silence)
	}
}

// ended is how a watch ends that we gave up.
func (w *watching) ended(why error) Input {
	if errors.Is(why, errOverdue) {
		return w.closed()
	}
	return classify(why)
}

// closed is how a watch ends that the server closed between two frames: no failure.
func (w *watching) closed() Input {
	w.Sink.Current()
	in := Input{Event: Closed, Silent: w.frames == 0, Short: w.short()}
	if in.Short {
		in.Err = errShort
	}
	return in
}

func (w *watching) short() bool { return time.Since(w.opened) < short }
