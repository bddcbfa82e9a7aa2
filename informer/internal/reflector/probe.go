package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A watch from a version that the server has not reached delivers nothing and no error. So after every failure the
// reflector asks for a list of one object and compares versions before it resumes. A server whose history is behind
// ours starts a new epoch.

var errEnough = errors.New("the watch has lasted long enough")

var errUnordered = errors.New("the versions of the server and of the loaded state cannot be compared")

// probe compares the server's version with ours. If ours is suspect, it also tries a watch at the server's.
func (r *Reflector) probe(ctx context.Context) Input {
	in, version := r.behind(ctx)
	if in.Event == Alike && r.m.suspect {
		return r.try(ctx, version)
	}
	return in
}

// behind compares the server's version with ours, and tells the sink up to which version changes are late.
func (r *Reflector) behind(ctx context.Context) (in Input, version string) {
	version, err := r.peek(ctx)
	if err != nil {
		return classify(err), ""
	}
	if in = r.compare(ctx, version); in.Event == Alike {
		r.Sink.Behind(version)
	}
	return in, version
}

// compare decides whether the stream can resume from a server that is at version.
func (r *Reflector) compare(ctx context.Context, version string) Input {
	ours := r.Sink.Version()
	switch {
	case wire.Older(version, ours), r.m.Resuming && wire.Older(version, r.goal):
		return Input{Event: Replaced, Err: ErrReplaced}
	case !r.m.Resuming:
		return r.checkHistory(ctx)
	}
	if !ordered(version, ours) {
		return Input{Event: Unverified, Err: errUnordered}
	}
	return r.verify(ctx, version)
}

// try checks whether the server accepts a watch at its own version. A watch that is accepted and does not end
// with an error at once works.
func (r *Reflector) try(ctx context.Context, version string) Input {
	if err := r.tryWatch(ctx, version); err != nil {
		in := classify(fmt.Errorf("try a watch: %w", err))
		in.Event = Failed // of the probe; the server did answer a list
		return in
	}
	return Input{Event: Alike, Works: true}
}

func (r *Reflector) tryWatch(ctx context.Context, version string) error {
	w, err := r.open(ctx, &tally{}, 1, "resourceVersion", version)
	if err != nil {
		return err
	}
	defer w.close()
	enough := time.AfterFunc(short, func() { w.cancel(errEnough) })
	defer enough.Stop()
	ev, err := w.frames.Next()
	switch {
	case err == nil && ev.Type == wire.Error:
		return status(ev.Format, ev.Raw)
	case err == nil, wire.Unreadable(err), errors.Is(err, io.EOF), errors.Is(context.Cause(w.ctx), errEnough):
		return nil
	}
	return cause(w.ctx, err)
}

// checkHistory looks for signs of another history. An object that the server lacks may have been deleted: then
// the watch delivers the deletion before the version that the server has afterwards.
func (r *Reflector) checkHistory(ctx context.Context) Input {
	if r.CheckHistory == nil {
		return Input{Event: Alike}
	}
	var pending bool
	err := r.inTurn(ctx, func(ctx context.Context) (err error) {
		pending, err = r.CheckHistory(ctx)
		return err
	})
	if errors.Is(err, ErrReplaced) {
		return Input{Event: Replaced, Err: err}
	}
	if r.until = ""; pending {
		if r.until, err = r.peek(ctx); err != nil {
			return classify(err)
		}
	}
	return Input{Event: Alike}
}

// inTurn calls ask once the stream is admitted: when a server returns, all streams send requests. The wait does
// not count against the timeout of ask.
func (r *Reflector) inTurn(ctx context.Context, ask func(context.Context) error) error {
	release, err := r.admit(ctx)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	if err := ask(ctx); err != nil {
		return cause(ctx, err)
	}
	return nil
}

// ordered reports whether two versions show that nothing happened between them, or that something did.
func ordered(a, b string) bool {
	_, ok := wire.CompareVersions(a, b)
	return ok || a == b && isVersion(a)
}

// isVersion reports whether a server at this version has a history. To a request, "0" means any version.
func isVersion(v string) bool { return v != "" && v != "0" }

// peek lists one object and returns the list's version.
func (r *Reflector) peek(ctx context.Context) (version string, err error) {
	release, err := r.admit(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	meta, err := r.page(ctx, r.query("limit", "1"), &tally{}, "", func(wire.Object, error) error { return nil })
	return meta.ResourceVersion, err
}

// verify lets the caller check the loaded state, while the server is at version.
func (r *Reflector) verify(ctx context.Context, version string) Input {
	if r.goal != "" && r.m.laps == maxLaps && r.Compare != nil {
		return r.prove(ctx)
	}
	if r.goal != "" { // keep the first goal: the goals of later probes would move away
		return Input{Event: Alike}
	}
	if r.Verify != nil {
		var pending bool
		err := r.inTurn(ctx, func(ctx context.Context) (err error) {
			pending, err = r.Verify(ctx)
			return err
		})
		if err != nil {
			return unverified(fmt.Errorf("verify the loaded state: %w", err))
		}
		if pending { // a missing object may have been deleted after the probe
			if version, err = r.peek(ctx); err != nil {
				return classify(err)
			}
		}
	}
	r.goal = version
	return Input{Event: Alike}
}

// prove compares the loaded state with a metadata-only list, since no bookmark shows that it is current.
func (r *Reflector) prove(ctx context.Context) Input {
	version, same, err := r.Compare(ctx)
	switch {
	case err != nil:
		return unverified(fmt.Errorf("compare the loaded state: %w", err))
	case !same:
		return Input{Event: Alike}
	}
	if err := r.Sink.CaughtUp(version); err != nil {
		return classify(err)
	}
	return Input{Event: CaughtUp}
}

// unverified is classify, except that a refusal is Unverified: waiting would not verify anything.
func unverified(err error) Input {
	in := classify(err)
	switch in.Event {
	case Refused, Missing, Expired:
		return Input{Event: Unverified, Err: err}
	}
	return in
}
