package sink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is the error of a sink that is used after Close.
var ErrClosed = errors.New("the sink is closed")

// Lazy opens a connection when it is first needed, keeps it, and opens another one after a Reset. At most one attempt
// to connect runs at a time. Lazy does not back off: the pump does. It is safe for concurrent use after its fields are
// set.
type Lazy[C comparable] struct {
	// Open opens a connection, and honours the end of its context.
	Open func(ctx context.Context) (C, error)
	// Free ends a connection and its goroutines. If the context has not ended, it may say
	// goodbye until then; else the connection is unusable.
	Free func(ctx context.Context, conn C) error
	// Broken reports whether a connection has ended while it was idle. It may be nil.
	Broken func(conn C) bool
	// Timeout bounds an attempt to connect. 0 means that only Open does.
	Timeout time.Duration
	// Patient lets an attempt continue when the context of Get ends, and the next Get waits for it. So a slow
	// handshake succeeds even if every Send is short.
	Patient bool

	mu      sync.Mutex
	conn    C
	open    bool
	attempt *attempt[C] // running, or ended and not yet seen by a Get
	closed  bool
}

// attempt is one call of Open.
type attempt[C any] struct {
	done   chan struct{}
	cancel context.CancelFunc
	conn   C
	err    error
}

// Get returns the connection, and opens it if necessary.
func (l *Lazy[C]) Get(ctx context.Context) (conn C, err error) {
	if ctx.Err() != nil {
		return conn, context.Cause(ctx)
	}
	a, conn, err := l.begin(ctx)
	if a == nil {
		return conn, err
	}
	var ended <-chan struct{}
	if l.Patient {
		ended = ctx.Done()
	}
	select {
	case <-a.done:
	case <-ended:
		return conn, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return conn, ErrClosed
	}
	if l.attempt == a {
		l.attempt, l.conn, l.open = nil, a.conn, a.err == nil
	}
	return a.conn, a.err
}

// begin returns the connection, or else the attempt to open one.
func (l *Lazy[C]) begin(ctx context.Context) (a *attempt[C], conn C, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, conn, ErrClosed
	}
	if l.open && (l.Broken == nil || !l.Broken(l.conn)) {
		return nil, l.conn, nil
	}
	if l.open {
		l.free(l.conn)
		l.open = false
	}
	if l.attempt != nil {
		return l.attempt, conn, nil
	}
	a = &attempt[C]{done: make(chan struct{})}
	if l.Patient {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, a.cancel = context.WithCancel(ctx)
	l.attempt = a
	go func() {
		defer close(a.done)
		defer a.cancel()
		a.conn, a.err = l.try(ctx)
	}()
	return a, conn, nil
}

// try calls Open within the timeout.
func (l *Lazy[C]) try(ctx context.Context) (C, error) {
	within, cancel := ctx, context.CancelFunc(func() {})
	if l.Timeout > 0 {
		within, cancel = context.WithTimeout(ctx, l.Timeout)
	}
	defer cancel()
	conn, err := l.Open(within)
	switch {
	case err == nil:
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	case ctx.Err() == nil && within.Err() != nil:
		err = fmt.Errorf("no answer within %s: %w", l.Timeout, within.Err())
	}
	return conn, err
}

// Reset drops a connection after a failure that is not about a message, unless it was dropped before. The next Get
// opens another one, which may lead to another server, with other credentials.
func (l *Lazy[C]) Reset(conn C) {
	l.mu.Lock()
	current := l.open && l.conn == conn
	if current {
		l.open = false
	}
	l.mu.Unlock()
	if current {
		l.free(conn)
	}
}

// free ends an unusable connection.
func (l *Lazy[C]) free(conn C) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.Free(ended, conn) // the failure before it counts
}

// Close ends the connection, or the attempt to open it. Every Get fails from then on.
func (l *Lazy[C]) Close(ctx context.Context) error {
	l.mu.Lock()
	a, conn, open := l.attempt, l.conn, l.open
	l.attempt, l.open, l.closed = nil, false, true
	l.mu.Unlock()
	if a != nil {
		a.cancel()
		<-a.done
		if a.err == nil {
			conn, open = a.conn, true
		}
	}
	if !open {
		return nil
	}
	return l.Free(ctx, conn)
}
