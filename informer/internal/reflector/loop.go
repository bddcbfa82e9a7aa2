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

// The own deadlines of a stream: an API server that hangs must not hang us.
const (
	// pageSize is client-go's.
	pageSize = 500
	// answerTimeout bounds the wait for the first byte and between two reads of a list.
	answerTimeout = time.Minute
	// silence is how long a watch that has bookmarks may say nothing; they come once a minute.
	silence = 150 * time.Second
	// overdue is how long after its deadline the server may close a watch.
	overdue = 30 * time.Second
	// short is the life of a watch that makes one suspect that the server will not keep any.
	short = time.Second
	// lasting is the life of a watch that, with a frame, makes one forget such suspicions.
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
	// Open asks for the stream's collection.
	Open Opener
	// Query holds the selectors.
	Query url.Values
	Sink  Sink
	// Lists bounds the lists under way: each holds an element while it runs, and so do Verify and Doubt.
	Lists  chan struct{}
	Timing Timing
	// Paged asks for lists in pages, never for streaming lists.
	Paged bool
	// Synced says that the sink holds the state of a completed list already.
	Synced bool
	// Resume says that the sink holds a state that was loaded, with a version: it is resumed without
	// a list where nothing speaks against it.
	Resume bool
	// Verify, if set, checks once, before a loaded state is resumed, that it is of the history that
	// the server has; the server's version is known then not to be behind it. True says that this shows only
	// once everything was seen that the server has now: Sink.CaughtUp tells. ErrRewritten says that
	// it is not, and a refusal of the server that it cannot be known: both end in a list that
	// compares by content. After any other error it is called again.
	Verify func(context.Context) (bool, error)
	// Compare compares the whole state that was loaded, up to the sink's version, with a list of metadata and
	// returns the list's version; same says that nothing differs. ErrRewritten says that what differs cannot
	// arrive by a watch.
	Compare func(context.Context) (version string, same bool, err error)
	// Doubt, if set, looks for a sign of another history each time that a watch is to be resumed after a
	// failure: the server's version need not be behind ours, if it was away for long. ErrRewritten is
	// such a sign; true says that one may be missing, which Sink.Settle tells once everything has been
	// seen that the server has now. Other errors prove nothing.
	Doubt func(context.Context) (bool, error)
	// Served, if set, tells whether the kind may be served although the server has answered 404 twice in a row:
	// then it is asked again, as after any other failure.
	Served func(context.Context) bool
	// Tell, if set, hears of requests. The loop waits for it.
	Tell func(Note)

	interrupter interrupter

	m         Machine
	bookmarks bool   // were seen on this stream
	versioned bool   // the server's lists have versions
	goal      string // the server's version when what was loaded was verified; empty before
	until     string // the server's version after which a doubt is settled; empty: there is none
}

// Run serves the stream until ctx ends or the kind is not served.
func (r *Reflector) Run(ctx context.Context) {
	r.m.Synced, r.m.Resuming, r.m.Paged = r.Synced, r.Resume, r.Paged
	eff := r.input(Input{Event: Begin})
	for {
		var in Input
		switch eff.Do {
		case DoStream:
			in = r.stream(ctx, eff.NewEpoch)
		case DoList:
			in = r.list(ctx, eff.NewEpoch)
		case DoProbe:
			in = r.probe(ctx)
		case DoWatch:
			in = r.watch(ctx)
		case DoSleep:
			in = sleep(ctx, eff.Delay)
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

// input makes one step and tells of it.
func (r *Reflector) input(in Input) Effects {
	if in.Event == Expired {
		r.tell(Note{Kind: NotedExpired, Err: in.Err})
	}
	m, eff := r.Timing.step(r.m, in)
	r.m = m
	if eff.Gap != "" {
		r.Sink.Missed(eff.Gap, in.Err, eff.Do == DoSkip)
	}
	r.Sink.Report(m)
	return eff
}

func (r *Reflector) tell(n Note) {
	if r.Tell != nil {
		r.Tell(n)
	}
}

// sleep adds up to a quarter, so that streams that failed together do not come back together.
func sleep(ctx context.Context, d time.Duration) Input {
	t := time.NewTimer(d + time.Duration(rand.Int64N(int64(d)/4+1)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return Input{Event: Timer}
}

// query copies the selectors and adds to them.
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

// admit waits for its turn to list, or to ask. release may be called twice.
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

// tally adds up what is told of one list or watch.
type tally struct {
	Note
	began time.Time
}

func (r *Reflector) start(n Note) *tally {
	r.tell(n)
	return &tally{Note: n, began: time.Now()}
}

func (r *Reflector) finish(t *tally, kind NoteKind, err error) {
	t.Kind, t.Err, t.Took = kind, err, time.Since(t.began)
	r.tell(t.Note)
}

// meter counts what is read for whatever is under way.
type meter struct {
	io.Reader
	of *tally
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	m.of.Bytes += int64(n)
	return n, err
}

// cause prefers the reason for which the context ended over what the connection made of it.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// reached tells whether a stream that has seen everything up to version has seen it up to goal, too.
func reached(version, goal string) bool { return version == goal || wire.Older(goal, version) }
