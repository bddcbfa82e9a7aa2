package clientgo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// capturing is a transport that answers what a marked context reads itself, and takes note of it: so a
// ListerWatcher tells what it would ask for. What it writes goes on to the server, and is noted as well.
type capturing struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*capturing)(nil)

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *capturing) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *capturing) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(captureKey{}).(*capture)
	if !ok {
		return t.next.RoundTrip(req)
	}
	c.note(req)
	if req.Method != http.MethodGet {
		return t.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close() // which a transport must
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Body:    io.NopCloser(bytes.NewReader(c.answer)),
		Request: req, ContentLength: int64(len(c.answer)),
	}, nil
}

type captureKey struct{}

// capture is what was asked under a marked context.
type capture struct {
	answer []byte // to everything that is read: JSON

	mu       sync.Mutex
	requests []captured
}

// captured is one request.
type captured struct {
	method string
	url    *url.URL
	accept string
}

// mark returns a context under which requests end up in c.
func (c *capture) mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, captureKey{}, c)
}

func (c *capture) note(req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := *req.URL
	c.requests = append(c.requests, captured{req.Method, &u, req.Header.Get("Accept")})
}

// only returns the request, if there was exactly one, and it was one to read.
func (c *capture) only() (captured, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.requests) != 1 || c.requests[0].method != http.MethodGet {
		return captured{}, false
	}
	return c.requests[0], true
}
