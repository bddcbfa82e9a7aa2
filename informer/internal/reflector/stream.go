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

// A server that does not know streaming lists may treat the request as a plain watch: it sends the objects,
// then their changes, and never the end of the list.
const (
	// quiet is the longest pause before the end of the list. An API server encodes objects from memory: 15,000
	// a second on two cores.
	quiet = 12 * time.Second
	// patience bounds the list, plus a second for every pace bytes received: a plain watch of a busy collection
	// is never quiet, but slower.
	patience = 30 * time.Second
	pace     = 1 << 20
)

var (
	errUnended = errors.New("the server does not end the streaming list")
	errCut     = errors.New("the server closed the streaming list before its end")
)

// stream reads a streaming list and continues with the same response as the watch.
//
// The query is client-go v0.37.2's (tools/cache/reflector.go). Without a version, the response is at least as
// new as the request.
func (r *Reflector) stream(ctx context.Context, trust Trust) Input {
	release, err := r.admit(ctx)
	if err != nil {
		return classify(err)
	}
	defer release()
	known := r.asking(trust)
	w, err := r.beginStream(ctx, trust, known)
	if known != "" && doubtful(err) {
		r.latest = true
		w, err = r.beginStream(ctx, trust, "")
	}
	if err != nil {
		return classify(err)
	}
	defer w.close()
	release()
	r.input(Input{Event: Listed})
	return w.follow(1) // the end was a frame: the server is not behind it
}

// beginStream reads the list, which is not older than known, if that is not empty. The caller closes the result.
func (r *Reflector) beginStream(ctx context.Context, trust Trust, known string) (w *watching, err error) {
	r.begin(trust)
	t := r.start(Note{Kind: NotedListBegan, Streaming: true})
	defer func() { r.finish(t, NotedListEnded, err) }()
	pairs := match(known)
	if pairs == nil {
		pairs = []string{"resourceVersionMatch", "NotOlderThan"}
	}
	if w, err = r.open(ctx, t, 300+rand.IntN(300), append(pairs, "sendInitialEvents", "true")...); err != nil {
		return nil, err
	}
	r.accepted()
	if err = w.initial(known); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// initial reads up to the end of the list, which must not be older than known, if that is not empty.
func (w *watching) initial(known string) error {
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
				return errUnended // the timer has fired: the request is canceled
			}
			if wire.Older(ev.ResourceVersion, known) {
				return errOlder
			}
			return w.ends(ev.ResourceVersion)
		case ev.Type == wire.Bookmark:
			continue // its version does not cover the objects that follow
		}
		if err := w.listed(ev, err); err != nil {
			return err
		}
		if !hush.Reset(quiet) || time.Since(opened) > patience+time.Duration(w.Bytes/pace)*time.Second {
			return errUnended
		}
	}
}

// listed is one frame of the list, with the object's first state or a change since. Only the object's metadata
// may be readable.
func (w *watching) listed(ev wire.Event, unreadable error) error {
	w.Objects++
	w.saw(ev.ResourceVersion)
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

func (w *watching) ends(version string) error {
	if !isVersion(version) {
		return errNoVersion
	}
	if err := w.Sink.Page(version); err != nil {
		return err
	}
	w.saw(version)
	w.live(version)
	return nil
}
