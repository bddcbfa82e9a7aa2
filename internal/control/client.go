package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// Client sends requests to the daemon that writes a journal. If none runs, the error is a *NoDaemonError; if
// the daemon refuses, a *Refusal; if it does not answer within some seconds, ErrSilent. A daemon gets an order only once it
// says that it takes it, so that one that does not answer never carries it out later; if it takes the order and
// then fails to answer, the error is ErrUncertain.
type Client struct {
	// Journal is the absolute path of the journal file.
	Journal string

	patience, result time.Duration // other limits for tests: see send
}

// Time limits of requests. They exceed the daemon's own.
const (
	// patience bounds the wait for the state, until an order is taken, and then for its result; long is for the
	// result of replaying dead letters.
	patience = orderTime + 4*time.Second
	long     = deadTime + 10*time.Second
	// maxAnswer bounds the size of an answer, in bytes.
	maxAnswer = 64 << 20
	// deadBatch is the number of dead letters replayed per request: slow receivers may take a while.
	deadBatch = 10
)

var _ Orders = (*Client)(nil)

// Status returns the daemon's state.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	err = c.send(ctx, &question{method: http.MethodGet, path: pathStatus}, &s)
	return s, err
}

// Pause implements Orders.
func (c *Client) Pause(ctx context.Context, sink string, paused bool) error {
	path := pathResume
	if paused {
		path = pathPause
	}
	return c.order(ctx, path, request{Sink: sink}, &doneAnswer{})
}

// Replay implements Orders.
func (c *Client) Replay(ctx context.Context, sink string, from Place) (r Replayed, err error) {
	err = c.order(ctx, pathReplay, request{Sink: sink, From: &from}, &r)
	return r, err
}

// Remove implements Orders.
func (c *Client) Remove(ctx context.Context, sink string) error {
	return c.order(ctx, pathRemove, request{Sink: sink}, &doneAnswer{})
}

// Skip implements Orders.
func (c *Client) Skip(ctx context.Context, sink, id string) (s Skipped, err error) {
	q := request{Sink: sink}
	if id != "" {
		q.IDs = []string{id}
	}
	err = c.order(ctx, pathSkip, q, &s)
	return s, err
}

// ReplayDead implements Orders, with several requests.
func (c *Client) ReplayDead(ctx context.Context, sink string, ids []string) (done Retried, err error) {
	for len(ids) > 0 && err == nil {
		n := min(len(ids), deadBatch)
		var a retriedAnswer
		err = c.order(ctx, pathReplayDead, request{Sink: sink, IDs: ids[:n]}, &a)
		if a.Error != "" {
			err = errors.New(a.Error)
		}
		done.Taken += a.Taken
		done.Refused += a.Refused
		ids = ids[n:]
	}
	return done, err
}

// DropDead implements Orders.
func (c *Client) DropDead(ctx context.Context, sink string, ids []string) (int, error) {
	var a droppedAnswer
	err := c.order(ctx, pathDropDead, request{Sink: sink, IDs: ids}, &a)
	return a.Dropped, err
}

func (c *Client) order(ctx context.Context, path string, order request, to any) error {
	body, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("ask the daemon: %w", err)
	}
	q := &question{method: http.MethodPost, path: path, body: body, result: patience}
	if path == pathReplayDead {
		q.result = long
	}
	return c.send(ctx, q, to)
}

// question is a request on its way. An order's body is sent once the daemon asks for it ("100 Continue"), unless the
// client has given up by then.
type question struct {
	method, path string
	body         []byte        // an order; nil for the state
	result       time.Duration // how long the result may take once the order is taken

	mu    sync.Mutex
	limit *time.Timer
	over  bool // the client has given up
	taken bool // the daemon has got at least the beginning of the order
}

// errOver ends a request whose client has given up.
var errOver = errors.New("the client has given up")

// Read reads the body of an order that the daemon takes.
func (q *question) Read(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.over:
		return 0, errOver
	case !q.taken:
		q.taken = true
		q.limit.Reset(q.result)
	case len(q.body) == 0:
		return 0, io.EOF
	}
	n := copy(p, q.body)
	q.body = q.body[n:]
	return n, nil
}

// begin starts the time limit, which ends the returned context with ErrSilent.
func (q *question) begin(ctx context.Context, patience time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = time.AfterFunc(patience, func() {
		q.mu.Lock()
		q.over = true
		q.mu.Unlock()
		cancel(ErrSilent)
	})
	return ctx, func() {
		q.limit.Stop()
		cancel(nil)
	}
}

// judge adds to an error without an answer what is known about the order.
func (q *question) judge(err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.method == http.MethodGet:
		return err
	case q.taken:
		return fmt.Errorf("%w; %w", err, ErrUncertain)
	}
	return fmt.Errorf("%w, and did not get the order", err)
}

// send sends a question on its own connection and decodes the answer.
func (c *Client) send(ctx context.Context, q *question, to any) error {
	if q.result != 0 {
		q.result = cmp.Or(c.result, q.result)
	}
	ctx, end := q.begin(ctx, cmp.Or(c.patience, patience))
	defer end()
	// The host name does not matter: the connection goes to the socket.
	r, err := http.NewRequestWithContext(ctx, q.method, "http://tattler"+q.path, nil)
	if err != nil {
		return fmt.Errorf("ask the daemon: %w", err)
	}
	if q.body != nil {
		r.Body, r.ContentLength = io.NopCloser(q), int64(len(q.body))
		r.Header.Set("Expect", "100-continue")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(byHeader, url.QueryEscape(GivenBy(ctx)))
	}
	transport := &http.Transport{
		DisableKeepAlives:     true,
		ExpectContinueTimeout: math.MaxInt64, // the time limit is ours
		DialContext:           func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, SocketPath(c.Journal)) },
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return c.explain(ctx, q, err)
	}
	defer resp.Body.Close()
	return c.explain(ctx, q, decodeAnswer(resp, to))
}

// decodeAnswer decodes an answer.
func decodeAnswer(resp *http.Response, to any) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusOK {
		return json.Unmarshal(b, to)
	}
	var e errorAnswer
	if json.Unmarshal(b, &e) != nil || e.Error == "" { // not from our server: it does not know the request
		return fmt.Errorf("it answered %s: is it another version?", resp.Status)
	}
	if resp.StatusCode == http.StatusUnprocessableEntity {
		return &Refusal{e.Error}
	}
	return errors.New(e.Error)
}

// explain turns an error into one that a user understands.
func (c *Client) explain(ctx context.Context, q *question, err error) error {
	var refusal *Refusal
	var sent *url.Error
	switch {
	case err == nil || errors.As(err, &refusal):
		return err
	case notServed(err):
		return &NoDaemonError{c.Journal, err}
	case errors.Is(err, fs.ErrPermission):
		if errors.As(err, &sent) {
			err = sent.Err
		}
		return fmt.Errorf("the daemon that records into %s belongs to another user, and only answers that user: %w", c.Journal, err)
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrSilent):
		err = q.judge(ErrSilent)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		err = q.judge(errors.New("it ended before it answered"))
	case errors.As(err, &sent):
		err = sent.Err
	}
	return fmt.Errorf("the daemon that records into %s: %w", c.Journal, err)
}

// notServed reports whether a connection error means that no process serves the socket.
func notServed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTSOCK)
}
