package informertest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"k8s.io/client-go/rest"
)

// Config connects to the server in memory, without a socket, so that a testing/synctest bubble sees every
// goroutine. Unlike net/http, it requests compression only if the client does.
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
	go func() {
		defer cancel()
		defer stop()
		if r.Body != nil {
			defer func() { _ = r.Body.Close() }() // a transport must close it; the error means nothing here
		}
		w.serve(t.s, r.WithContext(ctx))
	}()
	select {
	case <-w.ready:
	case <-ctx.Done(): // the client canceled, or the handler ended
		select {
		case <-w.ready: // the response has begun
		default:
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
	}
	return &http.Response{
		StatusCode: w.code,
		Status:     strconv.Itoa(w.code) + " " + http.StatusText(w.code),
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.header,
		Body:          stream{pr, cancel},
		ContentLength: -1,
		Request:       r,
	}, nil
}

// stream ends the handler when it is closed.
type stream struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (s stream) Close() error {
	s.cancel()
	return s.PipeReader.Close()
}

// response is the server's side of a response.
type response struct {
	header http.Header
	code   int
	body   *io.PipeWriter
	ready  chan struct{} // closed when code and header are set
}

// serve runs the handler.
func (w *response) serve(h http.Handler, r *http.Request) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // net/http compares this panic in the same way
			_ = w.body.CloseWithError(io.ErrUnexpectedEOF)
		} else if p != nil {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	_ = w.body.CloseWithError(r.Context().Err()) // a canceled request does not end with EOF
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

// Flush implements http.Flusher; nothing is buffered.
func (w *response) Flush() {}
