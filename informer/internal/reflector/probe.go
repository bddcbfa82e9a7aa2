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

var errUnordered = errors.New("the versions of the server and of what was loaded have no order")

// probe compares the server's version with ours and, where our version is suspect, tries the server's.
func (r *Reflector) probe(ctx context.Context) Input {
	version, err := r.peek(ctx)
	if err != nil {
		return classify(err)
	}
	in := r.compare(ctx, version)
	if in.Event == Alike {
		r.Sink.Behind(version)
	}
	if in.Event == Alike && r.m.suspect {
		return r.try(ctx, version)
	}
	return in
}

// compare tells whether the stream can go on where the server has version.
func (r *Reflector) compare(ctx context.Context, version string) Input {
	ours := r.Sink.Version()
	switch {
	case wire.Older(version, ours), r.m.Resuming && wire.Older(version, r.goal):
		return Input{Event: Rewritten, Err: ErrRewritten}
	case !r.m.Resuming:
		return r.doubt(ctx)
	}
	if !ordered(version, ours) {
		return Input{Event: Unverified, Err: errUnordered}
	}
	return r.verify(ctx, version)
}

// try tells whether the server accepts a watch at its own version. One that it accepts and does not end with an error
// at once works.
func (r *Reflector) try(ctx context.Context, version string) Input {
	if err := r.tryWatch(ctx, version); err != nil {
		in := classify(fmt.Errorf("try a watch: %w", err))
		in.Event = Failed // of the probe: the server answered a list
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

// doubt looks for signs of another history. What the server lacks of ours it may have deleted: by the
// version that it has afterwards, the watch has told so.
func (r *Reflector) doubt(ctx context.Context) Input {
	if r.Doubt == nil {
		return Input{Event: Alike}
	}
	var doubt bool
	err := r.inTurn(ctx, func(ctx context.Context) (err error) {
		doubt, err = r.Doubt(ctx)
		return err
	})
	if errors.Is(err, ErrRewritten) {
		return Input{Event: Rewritten, Err: err}
	}
	if r.until = ""; doubt {
		if r.until, err = r.peek(ctx); err != nil {
			return classify(err)
		}
	}
	return Input{Event: Alike}
}

// inTurn has the caller ask the server once it may list: of a server that comes back, all streams have
// something to ask. To wait for the turn takes nothing from the time for the answers.
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

// ordered tells whether it shows from two versions that nothing happened between them, or that
// something did.
func ordered(a, b string) bool {
	_, ok := wire.CompareVersions(a, b)
	return ok || a == b && a != "" && a != "0" // which are no versions
}

// peek asks for a list of one object, for the list's version.
func (r *Reflector) peek(ctx context.Context) (version string, err error) {
	release, err := r.admit(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	meta, err := r.page(ctx, r.query("limit", "1"), &tally{}, func(wire.Object, error) error { return nil })
	return meta.ResourceVersion, err
}

// verify lets the caller check what was loaded, while the server has version.
func (r *Reflector) verify(ctx context.Context, version string) Input {
	if r.goal != "" && r.m.laps == maxLaps && r.Compare != nil {
		return r.prove(ctx)
	}
	if r.goal != "" { // the later goal of a later probe would be one that moves away
		return Input{Event: Alike}
	}
	if r.Verify != nil {
		var doubt bool
		err := r.inTurn(ctx, func(ctx context.Context) (err error) {
			doubt, err = r.Verify(ctx)
			return err
		})
		if err != nil {
			return unverified(fmt.Errorf("verify what was loaded: %w", err))
		}
		if doubt { // what is missing may have been deleted after the probe
			if version, err = r.peek(ctx); err != nil {
				return classify(err)
			}
		}
	}
	r.goal = version
	return Input{Event: Alike}
}

// prove compares what was loaded with a list of metadata, since no bookmark says that it is current.
func (r *Reflector) prove(ctx context.Context) Input {
	version, same, err := r.Compare(ctx)
	switch {
	case err != nil:
		return unverified(fmt.Errorf("compare what was loaded: %w", err))
	case !same:
		return Input{Event: Alike}
	}
	if err := r.Sink.CaughtUp(version); err != nil {
		return classify(err)
	}
	return Input{Event: CaughtUp}
}

// unverified is classify, but that a refusal is an answer: waiting would not verify anything.
func unverified(err error) Input {
	in := classify(err)
	switch in.Event {
	case Refused, Missing, Expired:
		return Input{Event: Unverified, Err: err}
	}
	return in
}
