package control

import (
	"bytes"
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

// Options configure Serve.
type Options struct {
	Status func(context.Context) (Status, error)
	// Orders carries out orders, usually by an Audit; nil refuses them, because the daemon is starting.
	Orders Orders
	// Log receives invalid requests and failures; nil discards them.
	Log *slog.Logger
}

const (
	// maxBody bounds a request, in bytes.
	maxBody = 1 << 20
	// statusTime bounds collecting the state, orderTime an order, so that a hanging sink does not hang the
	// caller. Each dead letter takes as long as sending it.
	statusTime = 5 * time.Second
	orderTime  = 8 * time.Second
	deadTime   = 110 * time.Second
	// shutdownTime is the time that answers may still take when Serve ends.
	shutdownTime = time.Second
)

// Serve answers requests on a listener until ctx ends, then closes it and returns nil. It returns an error if
// the listener fails.
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
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if s.Shutdown(last) != nil {
		_ = s.Close() // a client does not read; the listener is closed already
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
	serve := func(path string, do func(context.Context, request) (any, error)) {
		if o.Orders == nil {
			do = func(context.Context, request) (any, error) {
				return nil, ErrStarting
			}
		}
		mux.Handle("POST "+path, &order{path, do, o.Log})
	}
	serve(pathPause, func(ctx context.Context, q request) (any, error) {
		return doneAnswer{}, o.Orders.Pause(ctx, q.Sink, true)
	})
	serve(pathResume, func(ctx context.Context, q request) (any, error) {
		return doneAnswer{}, o.Orders.Pause(ctx, q.Sink, false)
	})
	serve(pathReplay, func(ctx context.Context, q request) (any, error) {
		if q.From == nil {
			return nil, malformed("from: required")
		}
		return o.Orders.Replay(ctx, q.Sink, *q.From)
	})
	serve(pathRemove, func(ctx context.Context, q request) (any, error) {
		return doneAnswer{}, o.Orders.Remove(ctx, q.Sink)
	})
	serve(pathSkip, func(ctx context.Context, q request) (any, error) {
		if len(q.IDs) > 1 {
			return nil, malformed("ids: at most one change blocks a sink")
		}
		return o.Orders.Skip(ctx, q.Sink, strings.Join(q.IDs, ""))
	})
	serve(pathReplayDead, func(ctx context.Context, q request) (any, error) {
		done, err := o.Orders.ReplayDead(ctx, q.Sink, q.IDs)
		if err != nil && done != (Retried{}) { // report both
			return retriedAnswer{done, err.Error()}, nil
		}
		return retriedAnswer{Retried: done}, err
	})
	serve(pathDropDead, func(ctx context.Context, q request) (any, error) {
		n, err := o.Orders.DropDead(ctx, q.Sink, q.IDs)
		return droppedAnswer{n}, err
	})
	return mux
}

// malformedError reports an invalid request.
type malformedError struct{ text string }

func (e *malformedError) Error() string { return e.text }

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Sprintf(format, args...)}
}

// order handles one kind of order.
type order struct {
	path string
	do   func(context.Context, request) (any, error)
	log  *slog.Logger
}

// ServeHTTP logs requests that are no orders; Audit logs the others.
func (o *order) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	var a any
	err := read(w, r, &q)
	if err == nil {
		a, err = o.do(By(r.Context(), givenBy(r)), q)
	}
	var wrong *malformedError
	if errors.As(err, &wrong) {
		o.log.Warn("invalid request for an order", "order", o.path, "error", err)
	}
	answer(w, a, err)
}

// read decodes a request strictly: unknown fields are errors.
func read(w http.ResponseWriter, r *http.Request, to any) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return malformed("the request is not JSON: its Content-Type is %q", r.Header.Get("Content-Type"))
	}
	// The client sends the order once it is asked for it here, if it still waits.
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return malformed("read the request: %v", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return malformed("read the request: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformed("read the request: more than one value")
	}
	return nil
}

// answer writes the result of an order.
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
	_ = json.NewEncoder(w).Encode(a) // the client has gone
}
