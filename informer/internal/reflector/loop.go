package reflector

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A stream's own deadlines, so that an API server that hangs does not hang the stream.
const (
	// pageSize is client-go's.
	pageSize = 500
	// answerTimeout bounds the wait for the first byte, and between two reads of a list.
	answerTimeout = time.Minute
	// silence is the longest time without a frame on a watch that has bookmarks, which come once a minute.
	silence = 150 * time.Second
	// overdue is the delay after its deadline within which the server must close a watch.
	overdue = 30 * time.Second
	// short is the lifetime below which a watch suggests that the server does not sustain watches.
	short = time.Second
	// lasting is the lifetime at which a watch with a frame clears such a suspicion.
	lasting = 5 * time.Second
)

var (
	errNoAnswer = errors.New("no answer within a minute")
	errSilent   = errors.New("the watch fell silent")
	errOverdue  = errors.New("the server did not end the watch in time")
	errShort    = errors.New("the server ends watches at once")
)

// Reflector serves one stream.
type Reflector struct {
	// Open sends a GET for the stream's collection.
	Open Opener
	// Query holds the selectors.
	Query url.Values
	Sink  Sink
	// Lists bounds concurrent lists: each holds an element while it runs, and so do Verify and CheckHistory.
	Lists  chan struct{}
	Timing Timing
	// Paged asks for lists in pages, never for streaming lists.
	Paged bool
	// Resume says that the sink holds a loaded state with a version: it is resumed without a list unless a
	// check fails.
	Resume bool
	// Verify, if set, checks once, before a loaded state is resumed, that it belongs to the server's history.
	// By then the server's version is known to be at least the state's. pending means that the result is only
	// known once the stream has seen everything that the server has now, at Sink.CaughtUp. ErrReplaced means
	// that the history is another one; a refusal by the server means that it cannot be known, and a list
	// compares contents. After any other error Verify is called again.
	Verify func(context.Context) (bool, error)
	// Compare compares the whole loaded state, up to the sink's version, with a metadata-only list and returns
	// the list's version; same means that nothing differs. ErrMissed means that a watch cannot deliver the
	// differences.
	Compare func(context.Context) (version string, same bool, err error)
	// CheckHistory, if set, looks for a sign of another history each time that a watch is to be resumed after a
	// failure: after a long interruption, the version of a restored server may again be ahead of the sink's.
	// ErrReplaced is such a sign. pending means that something is missing on the server that it may have
	// deleted; Sink.HistoryChecked decides once the stream has seen everything that the server has now. Other
	// errors prove nothing.
	CheckHistory func(context.Context) (bool, error)
	// Served, if set, reports whether the kind may be served although the server has answered 404 twice in a
	// row: then the request is retried, as after any other failure.
	Served func(context.Context) bool
	// Stalled, if set, reports whether a frame that comes now on a watch that was requested at a time may have been sent
	// long ago. Then the watch is opened anew.
	Stalled func(asked time.Time) bool
	// Observe, if set, receives notes about requests. The loop waits for it.
	Observe func(Note)

	interrupter interrupter
	requests    requests
	hurry       hurry

	m         Machine
	bookmarks bool   // have been seen on this stream
	versioned bool   // the server's lists have versions
	goal      string // the server's version when the loaded state was verified; empty before
	until     string // the server's version at which a pending history check ends; empty: none is pending
	seen      string // the newest version of this epoch of which anything was received; empty: none
	latest    bool   // the next list must be the server's newest, not only as new as seen
}

// Run serves the stream until ctx ends.
func (r *Reflector) Run(ctx context.Context) {
	r.m.Resuming, r.m.Paged = r.Resume, r.Paged
	eff := r.input(Input{Event: Begin})
	for {
		var in Input
		switch eff.Do {
		case DoStream:
			in = r.stream(ctx, eff.Trust)
		case DoList:
			in = r.list(ctx, eff.Trust)
		case DoProbe:
			in = r.probe(ctx)
		case DoWatch:
			in = r.watch(ctx)
		case DoSleep:
			in = r.wait(ctx, eff.Delay)
		case DoPark:
			in = r.park(ctx, eff.Delay)
		default:
			return
		}
		if in.Event == Missing && r.m.missing > 0 && r.Served != nil && r.Served(ctx) {
			in.Event = Failed
		}
		if ctx.Err() != nil {
			in = Input{Event: Stop}
		}
		eff = r.input(in)
	}
}

// input makes one step and reports the new state.
func (r *Reflector) input(in Input) Effects {
	if in.Event == Expired {
		r.note(Note{Kind: NotedExpired, Err: in.Err})
	}
	m, eff := r.Timing.step(r.m, in)
	r.m = m
	if eff.Gap != "" {
		r.Sink.Missed(eff.Gap, in.Err, eff.Do == DoSkip)
	}
	if eff.Drop {
		r.Sink.Retire()
	}
	if m.State == Parked {
		r.requests.open(func() {}) // before others learn that it is parked
	}
	r.Sink.Report(m)
	if m.State != Parked {
		r.requests.open(nil)
	}
	return eff
}

func (r *Reflector) note(n Note) {
	if r.Observe != nil {
		r.Observe(n)
	}
}

// sleep adds up to a quarter to d, so that streams that failed together do not retry together.
func sleep(ctx context.Context, d time.Duration) Input {
	t := time.NewTimer(d + time.Duration(rand.Int64N(int64(d)/4+1)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return Input{Event: Timer}
}

// query returns the selectors with pairs added.
func (r *Reflector) query(pairs ...string) url.Values {
	q := url.Values{}
	for k, v := range r.Query {
		q[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// admit waits for permission to list or to send a request. release may be called twice.
func (r *Reflector) admit(ctx context.Context) (release func(), err error) {
	select {
	case r.Lists <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	held := true
	return func() {
		if held {
			<-r.Lists
		}
		held = false
	}, nil
}

// tally collects the numbers for the note about one list or watch.
type tally struct {
	Note
	began time.Time
}

func (r *Reflector) start(n Note) *tally {
	r.note(n)
	return &tally{Note: n, began: time.Now()}
}

func (r *Reflector) finish(t *tally, kind NoteKind, err error) {
	t.Kind, t.Err, t.Took = kind, err, time.Since(t.began)
	r.note(t.Note)
}

// meter counts the bytes read by the current request.
type meter struct {
	io.Reader
	of *tally
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	m.of.Bytes += int64(n)
	return n, err
}

// cause prefers the cause of the context's end to the connection's error.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// reached reports whether a stream that has seen everything up to version has also seen everything up to goal.
func reached(version, goal string) bool { return version == goal || wire.Older(goal, version) }
