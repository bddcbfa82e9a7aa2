package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A server that does not know streaming lists may take the request for a plain watch: it tells the
// objects, then what happens to them, and never that the list ended.
const (
	// quiet is how long nothing may come before the end. An API server encodes what it holds in
	// memory: 15,000 objects a second on two cores.
	quiet = 12 * time.Second
	// patience is how long the list may take, beside a second for every pace bytes that came: a
	// plain watch of a busy collection is never quiet, but slower.
	patience = 30 * time.Second
	pace     = 1 << 20
)

var (
	errUnended = errors.New("the server does not end the streaming list")
	errCut     = errors.New("the server closed the streaming list before its end")
)

// stream reads a streaming list, and goes on with the same answer as the watch.
//
// The query is the one of client-go v0.37.2, tools/cache/reflector.go, without a version: what comes
// is at least as new as the request.
func (r *Reflector) stream(ctx context.Context, newEpoch bool) Input {
	release, err := r.admit(ctx)
	if err != nil {
		return classify(err)
	}
	defer release()
	r.begin(newEpoch)
	t := r.start(Note{Kind: NotedListBegan, Streaming: true})
	w, err := r.open(ctx, t, 300+rand.IntN(300), "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan")
	if err != nil {
		r.finish(t, NotedListEnded, err)
		return classify(err)
	}
	defer w.close()
	r.accepted()
	err = w.initial()
	r.finish(t, NotedListEnded, err)
	if err != nil {
		return classify(err)
	}
	release()
	r.input(Input{Event: Listed})
	return w.follow(1) // the end was a frame: the server is not behind it
}

// initial reads up to the end of the list.
func (w *watching) initial() error {
	hush := time.AfterFunc(quiet, func() { w.cancel(errUnended) })
	defer hush.Stop()
	for opened := time.Now(); ; {
		ev, err := w.next()
		switch {
		case errors.Is(err, io.EOF):
			return errCut
		case err != nil && ev.Name == "":
			return fmt.Errorf("read streaming list: %w", err)
		case ev.Type == wire.Error:
			return status(ev.Format, ev.Raw)
		case ev.InitialEnd:
			if !hush.Stop() {
				return errUnended // it has rung: the request is given up
			}
			return w.live(ev.ResourceVersion)
		case ev.Type == wire.Bookmark:
			continue // what it says is not true of what comes
		}
		if err := w.listed(ev, err); err != nil {
			return err
		}
		if !hush.Reset(quiet) || time.Since(opened) > patience+time.Duration(w.Bytes/pace)*time.Second {
			return errUnended
		}
	}
}

// listed is one frame of the list, of which the object may be unreadable but for its metadata. It is
// the first word on an object, or a change since.
func (w *watching) listed(ev wire.Event, unreadable error) error {
	w.Objects++
	switch {
	case ev.Type == wire.Deleted:
		w.Sink.Gone(ev.Object)
		return nil
	case unreadable != nil:
		w.Sink.Unreadable(ev.Meta, unreadable)
		return nil
	}
	return w.Sink.Item(ev.Object)
}

func (w *watching) live(version string) error {
	if err := w.Sink.Page(version); err != nil {
		return err
	}
	w.Sink.Live(version)
	return nil
}
