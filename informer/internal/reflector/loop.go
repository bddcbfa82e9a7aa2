package reflector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Sink takes what the server says. The loop calls it from one goroutine.
type Sink interface {
	// Begin starts a list from its first page; with newEpoch, under another history.
	Begin(newEpoch bool)
	// Item is one object of a list; its bytes are valid during the call. ErrRewritten says that it
	// proves another history.
	Item(wire.Object) error
	// Unreadable says that a list holds an object that cannot be read; its name may be known.
	Unreadable(wire.Meta, error)
	// Page ends a page of a list that has the version; ErrRewritten as for Item.
	Page(version string) error
	// Live ends a list: what it did not name is gone.
	Live(version string)
	// Event is one change; its bytes are valid during the call.
	Event(wire.Event)
	// Bookmark says that everything up to the version was seen.
	Bookmark(version string)
	// Current says that nothing is missing at this moment.
	Current()
	// Missed says that versions after Version are or will be missing. Told is true where no list
	// follows, so that nobody else will tell.
	Missed(reason string, tell bool)
	// Version is where a watch resumes.
	Version() string
	// Report tells where the stream stands, after each step.
	Report(Machine)
}

// ErrRewritten is what a Sink returns for a list that is older than what it knows.
var ErrRewritten = errors.New("the server's history was replaced")

// Opener sends a GET and returns the body of a successful answer.
type Opener func(ctx context.Context, query url.Values) (io.ReadCloser, error)

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
	// Lists bounds the lists under way: each holds an element while it runs.
	Lists  chan struct{}
	Timing Timing
	// Synced says that the sink holds the state of a completed list already.
	Synced bool

	m         Machine
	bookmarks bool // were seen on this stream
}

// Run serves the stream until ctx ends or the kind is not served.
func (r *Reflector) Run(ctx context.Context) {
	r.m.Synced = r.Synced
	eff := r.input(Input{Event: Begin})
	for {
		var in Input
		switch eff.Do {
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
		if ctx.Err() != nil {
			in = Input{Event: Stop}
		}
		eff = r.input(in)
	}
}

// input makes one step and tells of it.
func (r *Reflector) input(in Input) Effects {
	m, eff := r.Timing.step(r.m, in)
	r.m = m
	if eff.Gap != "" {
		r.Sink.Missed(eff.Gap, eff.Do == DoSkip)
	}
	r.Sink.Report(m)
	return eff
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

// list reads a list, page after page.
func (r *Reflector) list(ctx context.Context, newEpoch bool) Input {
	release, err := r.admit(ctx)
	if err != nil {
		return classify(err)
	}
	defer release()
	r.Sink.Begin(newEpoch)
	limit := strconv.Itoa(pageSize)
	if r.m.Unpaged {
		limit = ""
	}
	for next := ""; ; {
		meta, err := r.page(ctx, r.query("limit", limit, "continue", next), r.item)
		if err == nil {
			err = r.Sink.Page(meta.ResourceVersion)
		}
		if errors.Is(err, ErrRewritten) {
			return Input{Event: Rewritten, Err: err}
		}
		if err != nil {
			return classify(err)
		}
		if next = meta.Continue; next == "" {
			r.Sink.Live(meta.ResourceVersion)
			return Input{Event: Listed}
		}
	}
}

func (r *Reflector) item(o wire.Object, err error) error {
	if err != nil {
		r.Sink.Unreadable(o.Meta, err)
		return nil
	}
	return r.Sink.Item(o)
}

// admit waits for its turn to list.
func (r *Reflector) admit(ctx context.Context) (release func(), err error) {
	select {
	case r.Lists <- struct{}{}:
		return func() { <-r.Lists }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// page reads one answer to a list.
func (r *Reflector) page(ctx context.Context, q url.Values, item func(wire.Object, error) error) (wire.ListMeta, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(answerTimeout, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	body, err := r.Open(ctx, q)
	if err != nil {
		return wire.ListMeta{}, err
	}
	defer func() { _ = body.Close() }()
	if r.m.State == Listing && r.m.Err != nil {
		r.input(Input{Event: Accepted})
	}
	l := wire.NewList(progress{body, timer})
	for {
		o, err := l.Next()
		var bad *wire.ObjectError
		switch {
		case errors.Is(err, io.EOF):
			return l.Meta(), nil
		case err != nil && !errors.As(err, &bad):
			return wire.ListMeta{}, fmt.Errorf("read list: %w", cause(ctx, err))
		}
		if err := item(o, err); err != nil {
			return wire.ListMeta{}, err
		}
	}
}

// progress puts a deadline off with every read.
type progress struct {
	io.Reader
	timer *time.Timer
}

func (p progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.timer.Reset(answerTimeout)
	return n, err
}

// cause prefers the reason for which the context ended over what the connection made of it.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// probe compares the server's version with ours.
func (r *Reflector) probe(ctx context.Context) Input {
	release, err := r.admit(ctx)
	if err != nil {
		return classify(err)
	}
	defer release()
	meta, err := r.page(ctx, r.query("limit", "1"), func(wire.Object, error) error { return nil })
	if err != nil {
		return classify(err)
	}
	if wire.Older(meta.ResourceVersion, r.Sink.Version()) {
		return Input{Event: Rewritten, Err: ErrRewritten}
	}
	return Input{Event: Alike}
}

// status is the error that an ERROR event carries.
func status(raw []byte) error {
	var st metav1.Status
	if err := json.Unmarshal(raw, &st); err != nil {
		return fmt.Errorf("read error event: %w", err)
	}
	return &apierrors.StatusError{ErrStatus: st}
}
