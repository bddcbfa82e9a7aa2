package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"
)

// Options are those of Serve.
type Options struct {
	Status func(context.Context) (Status, error)
	// Orders follows orders; nil refuses them, because the daemon starts.
	Orders Orders
	// Log hears of orders, and of what fails; nil discards.
	Log *slog.Logger
}

const (
	// maxBody bounds a request.
	maxBody = 1 << 20
	// statusTime bounds how long the state is gathered, orderTime how long an order may take: what waits
	// for a sink that hangs must not hang who asks. A dead letter takes as long as its sink's sending.
	statusTime = 5 * time.Second
	orderTime  = 8 * time.Second
	deadTime   = 110 * time.Second
	// farewell is how long answers may still take when Serve ends.
	farewell = time.Second
)

// Serve answers on a listener until ctx ends, and closes it. It returns nil then, or why the listener
// broke.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &http.Server{
		Handler:           handler(o),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      deadTime + 10*time.Second,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx }, // orders end with the daemon
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the socket: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if s.Shutdown(last) != nil {
		_ = s.Close() // somebody does not read; the listener is closed already
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the socket: %w", err)
	}
	return nil
}

func handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathStatus, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), statusTime)
		defer cancel()
		s, err := o.Status(ctx)
		answer(w, s, err)
	})
	serve := func(path string, limit time.Duration, do func(context.Context, request) (any, error)) {
		if o.Orders == nil {
			do = func(context.Context, request) (any, error) {
				return nil, Refuse("the daemon is starting: try again once tattler status says that it records")
			}
		}
		mux.Handle("POST "+path, &order{path, limit, do, o.Log})
	}
	serve(pathPause, orderTime, func(ctx context.Context, q request) (any, error) {
		return doneAnswer{}, o.Orders.Pause(ctx, q.Sink, true)
	})
	serve(pathResume, orderTime, func(ctx context.Context, q request) (any, error) {
		return doneAnswer{}, o.Orders.Pause(ctx, q.Sink, false)
	})
	serve(pathReplay, orderTime, func(ctx context.Context, q request) (any, error) {
		if q.From == nil {
			return nil, malformed("from: say where to begin")
		}
		return o.Orders.Replay(ctx, q.Sink, *q.From)
	})
	serve(pathRemove, orderTime, func(ctx context.Context, q request) (any, error) {
		return doneAnswer{}, o.Orders.Remove(ctx, q.Sink)
	})
	serve(pathSkip, orderTime, func(ctx context.Context, q request) (any, error) {
		if len(q.IDs) > 1 {
			return nil, malformed("ids: one change at most holds a sink up")
		}
		return o.Orders.Skip(ctx, q.Sink, strings.Join(q.IDs, ""))
	})
	serve(pathReplayDead, deadTime, func(ctx context.Context, q request) (any, error) {
		done, err := o.Orders.ReplayDead(ctx, q.Sink, q.IDs)
		if err != nil && done != (Retried{}) { // both are to be told
			return retriedAnswer{done, busy(err).Error()}, nil
		}
		return retriedAnswer{Retried: done}, err
	})
	serve(pathDropDead, orderTime, func(ctx context.Context, q request) (any, error) {
		n, err := o.Orders.DropDead(ctx, q.Sink, q.IDs)
		return droppedAnswer{n}, err
	})
	return mux
}

// malformedError is a request that does not say what it must.
type malformedError struct{ text string }

func (e *malformedError) Error() string { return e.text }

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Sprintf(format, args...)}
}

// order serves one order.
type order struct {
	path  string
	limit time.Duration
	do    func(context.Context, request) (any, error)
	log   *slog.Logger
}

// ServeHTTP logs each order: who looks for a change that was not delivered must find that somebody has
// paused the sink.
func (o *order) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	err := read(w, r, &q)
	var a any
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), o.limit)
		defer cancel()
		a, err = o.do(ctx, q)
	}
	if err = busy(err); err != nil {
		o.log.Warn("an order was not followed", "order", o.path, "sink", q.Sink, "err", err)
	} else {
		o.log.Info("an order was followed", "order", o.path, "sink", q.Sink, "letters", len(q.IDs))
	}
	answer(w, a, err)
}

// busy says more than that a deadline was exceeded: what waits is a sink that is in the midst of a delivery,
// or the disk.
func busy(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("it takes too long: the sink is in the midst of a delivery that does not end, or the disk is slow; try again: %w", err)
}

// read decodes a request, strictly: what is not understood is not left out.
func read(w http.ResponseWriter, r *http.Request, to any) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return malformed("the request is not JSON: its Content-Type is %q", r.Header.Get("Content-Type"))
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return malformed("read the request: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformed("read the request: there is more than one")
	}
	return nil
}

// answer writes what an order came to.
func answer(w http.ResponseWriter, a any, err error) {
	code := http.StatusOK
	if err != nil {
		var refusal *Refusal
		var wrong *malformedError
		switch code = http.StatusInternalServerError; {
		case errors.As(err, &refusal):
			code = http.StatusUnprocessableEntity
		case errors.As(err, &wrong):
			code = http.StatusBadRequest
		}
		a = errorAnswer{err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(a) // who asked has gone
}
