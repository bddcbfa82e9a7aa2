package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// Client sends requests to the daemon that writes a journal. If none runs, the error is a *NoDaemonError; if
// the daemon refuses, a *Refusal; if it does not answer within some seconds, ErrSilent.
type Client struct {
	// Journal is the absolute path of the journal file.
	Journal string

	patience, long time.Duration // shorter in tests
}

// Time limits of requests. They exceed the daemon's own.
const (
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
	err = c.ask(ctx, http.MethodGet, pathStatus, c.patience, nil, &s)
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
		err = c.ask(ctx, http.MethodPost, pathReplayDead, cmp.Or(c.long, long), request{Sink: sink, IDs: ids[:n]}, &a)
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

func (c *Client) order(ctx context.Context, path string, q request, to any) error {
	return c.ask(ctx, http.MethodPost, path, c.patience, q, to)
}

// ask sends a request on its own connection and decodes the answer.
func (c *Client) ask(ctx context.Context, method, path string, limit time.Duration, q, to any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(limit, patience), ErrSilent)
	defer cancel()
	var body bytes.Buffer
	if q != nil {
		if err := json.NewEncoder(&body).Encode(q); err != nil {
			return fmt.Errorf("ask the daemon: %w", err)
		}
	}
	// The host name does not matter: the connection goes to the socket.
	r, err := http.NewRequestWithContext(ctx, method, "http://tattler"+path, &body)
	if err != nil {
		return fmt.Errorf("ask the daemon: %w", err)
	}
	if q != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(byHeader, url.QueryEscape(GivenBy(ctx)))
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, SocketPath(c.Journal)) },
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer resp.Body.Close()
	return c.explain(ctx, decodeAnswer(resp, to))
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
func (c *Client) explain(ctx context.Context, err error) error {
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
		err = ErrSilent
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		err = errors.New("it ended before it answered")
	case errors.As(err, &sent):
		err = sent.Err
	}
	return fmt.Errorf("the daemon that records into %s: %w", c.Journal, err)
}

// notServed reports whether a connection error means that no process serves the socket.
func notServed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTSOCK)
}
