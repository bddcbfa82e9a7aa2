package clientgo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// capturing is a transport that intercepts the response to a list or watch under a marked context, and returns a
// response without objects instead. The program's own client still forms the requests: its headers, rate limit,
// retries and error handling apply.
type capturing struct {
	next http.RoundTripper
	base string // path of the server's URL
	gzip bool   // the client may request gzip
}

var _ utilnet.RoundTripperWrapper = (*capturing)(nil)

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *capturing) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *capturing) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(tapKey{}).(*tap)
	if !ok || !c.matches(req, t.base) {
		return t.next.RoundTrip(req)
	}
	if t.gzip && req.Header.Get("Accept-Encoding") == "" { // otherwise net/http sets it and uncompresses too late
		req = req.Clone(req.Context())
		req.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := t.next.RoundTrip(req)
	f := c.take(resp, err)
	switch {
	case f == 0:
		return resp, err
	case c.watch:
		return answered(resp, newSilentBody(req.Context(), resp.Body)), nil
	}
	return answered(resp, &listResponse{body: resp.Body, read: func(body io.Reader) ([]byte, error) { return c.read(body, f) }}), nil
}

type tapKey struct{}

// tap intercepts the response to the request that a ListerWatcher sends in one call.
type tap struct {
	watch                  bool
	version, continueToken string // the request's resource version and continue token
	// read reads a list and returns the body to respond with instead.
	read func(body io.Reader, f wire.Format) ([]byte, error)

	mu    sync.Mutex
	ended bool // the call has returned: later requests pass through
	got   captured
}

// newTap returns a tap for a call with these options.
func newTap(o metav1.ListOptions, watch bool) *tap {
	return &tap{watch: watch, version: o.ResourceVersion, continueToken: o.Continue}
}

// errReadLate is returned for a list that is read after its List call has returned.
var errReadLate = errors.New("the list was not read while its ListerWatcher was called")

// captured is the result of a tap.
type captured struct {
	broken      bool          // a request failed without a response
	unsupported string        // the media type of a response that cannot be cut
	taken       int           // number of intercepted responses
	body        io.ReadCloser // of the last response, if it is a watch
	format      wire.Format
}

// mark returns a context whose requests are tapped.
func (t *tap) mark(ctx context.Context) context.Context { return context.WithValue(ctx, tapKey{}, t) }

// matches reports whether a request is the one to intercept. All others pass through.
func (t *tap) matches(req *http.Request, base string) bool {
	if req.Method != http.MethodGet || !isCollection(belowBase(req.URL.Path, base)) {
		return false
	}
	q := req.URL.Query()
	watch := q.Get("watch")
	if (watch == "true" || watch == "1") != t.watch || q.Get("resourceVersion") != t.version || q.Get("continue") != t.continueToken {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended
}

// belowBase returns a path relative to the server's URL.
func belowBase(path, base string) string {
	return strings.TrimPrefix(path, strings.TrimSuffix(base, "/"))
}

// isCollection reports whether a path is a resource's collection, in all namespaces or one.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false
	}
	return len(parts) == 1 || len(parts) == 3 && parts[0] == "namespaces"
}

// take intercepts a response and returns its format, or 0 if it passes through.
func (t *tap) take(resp *http.Response, err error) wire.Format {
	if err == nil {
		request.Uncompress(resp)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.got.broken = true
		return 0
	}
	if t.ended || resp.StatusCode != http.StatusOK {
		return 0
	}
	f := request.FormatOf(resp)
	if f == 0 {
		t.got.unsupported = resp.Header.Get("Content-Type")
		return 0
	}
	t.got.taken++
	if t.watch {
		t.got.drop()
		t.got.body, t.got.format = resp.Body, f
	}
	return f
}

// record calls f, unless the call has already returned.
func (t *tap) record(f func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errReadLate
	}
	f()
	return nil
}

// end ends the call and returns what was intercepted.
func (t *tap) end() captured {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	return t.got
}

// drop closes an intercepted body.
func (c *captured) drop() {
	if c.body != nil {
		_ = c.body.Close()
	}
}

// reason returns why no response was intercepted.
func (c *captured) reason() error {
	if c.unsupported != "" {
		return fmt.Errorf("the server answered in %s, which cannot be cut into objects: set Options.Decoded", c.unsupported)
	}
	return errElsewhere
}

// answered returns a copy of a response with another body.
func answered(resp *http.Response, body io.ReadCloser) *http.Response {
	made := *resp
	made.Header = resp.Header.Clone()
	made.Header.Set("Content-Type", "application/json")
	made.Header.Del("Content-Length")
	made.Body, made.ContentLength = body, -1
	return &made
}

// listResponse reads the server's list when its reader does, so that the reader gets its errors.
type listResponse struct {
	body io.ReadCloser
	read func(io.Reader) ([]byte, error)
	rest *bytes.Reader
	err  error
}

// Read implements io.Reader.
func (a *listResponse) Read(p []byte) (int, error) {
	if a.rest == nil {
		var made []byte
		made, a.err = a.read(a.body)
		a.rest = bytes.NewReader(made)
	}
	if a.err != nil {
		return 0, a.err
	}
	return a.rest.Read(p)
}

// Close implements io.Closer.
func (a *listResponse) Close() error { return a.body.Close() }

// silentBody is the body of a watch without events. It ends with its request. Closing it closes the server's
// response.
type silentBody struct {
	io.Closer

	ctx    context.Context // of the request
	once   sync.Once
	closed chan struct{}
}

func newSilentBody(ctx context.Context, answer io.Closer) *silentBody {
	return &silentBody{Closer: answer, ctx: ctx, closed: make(chan struct{})}
}

// Read implements io.Reader.
func (s *silentBody) Read([]byte) (int, error) {
	select {
	case <-s.closed:
		return 0, io.EOF
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// Close implements io.Closer.
func (s *silentBody) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Closer.Close()
}
