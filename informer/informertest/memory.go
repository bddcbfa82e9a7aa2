package informertest

import (
	"context"
	"io"
	"net"
	"net/http"
	"syscall"

	"k8s.io/client-go/rest"
)

// Config reaches the server in memory, without a socket, so that a testing/synctest bubble sees
// every goroutine.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://informertest.invalid", Transport: roundTripper{s}}
}

type roundTripper struct{ s *Server }

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	t.s.mu.Lock()
	down := t.s.down
	t.s.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ctx, cancel := context.WithCancel(r.Context())
	pr, pw := io.Pipe()
	w := &response{header: http.Header{}, body: pw, ready: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = pw.CloseWithError(context.Canceled) })
	failed := make(chan struct{})
	go func() {
		defer cancel()
		defer stop()
		if !w.serve(t.s, r.WithContext(ctx)) {
			close(failed)
		}
	}()
	select {
	case <-w.ready:
	case <-failed:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case <-ctx.Done():
		select {
		case <-w.ready: // it was answered, and ended
		default:
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
	}
	return &http.Response{
		StatusCode: w.code,
		Status:     http.StatusText(w.code),
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.header,
		Body:          body{pr, cancel},
		ContentLength: -1,
		Request:       r,
	}, nil
}

// body ends the handler when it is closed.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// response is the server's side of an answer.
type response struct {
	header http.Header
	code   int
	body   *io.PipeWriter
	ready  chan struct{} // closed when code and header are set
}

// serve runs the handler; it returns false where the connection broke before the answer.
func (w *response) serve(h http.Handler, r *http.Request) (answered bool) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // net/http compares a panic so, too
			_ = w.body.CloseWithError(io.ErrUnexpectedEOF)
			answered = w.code != 0
		} else if p != nil {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	_ = w.body.CloseWithError(r.Context().Err()) // a request that was given up has no clean end
	return true
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
		close(w.ready)
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush implements http.Flusher: nothing is held back.
func (w *response) Flush() {}
