package clientgo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// capturing is a transport that keeps what the server answers to a list or watch under a marked context for
// whoever marked it, and hands on a made-up answer. So the requests are those of the program's own client: its
// headers, its rate limit, its retries and the errors that it makes of refusals.
type capturing struct {
	next http.RoundTripper
	base string // path of the server's address
	gzip bool   // may be asked for
}

var _ utilnet.RoundTripperWrapper = (*capturing)(nil)

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *capturing) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *capturing) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(tapKey{}).(*tap)
	if !ok || !c.wants(req, t.base) {
		return t.next.RoundTrip(req)
	}
	if t.gzip && req.Header.Get("Accept-Encoding") == "" { // else net/http would, and would uncompress late
		req = req.Clone(req.Context())
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if c.watch {
		return c.tapWatch(t.next, req)
	}
	return c.tapList(t.next, req)
}

type tapKey struct{}

// tap takes the answers to what a ListerWatcher asks for in one call.
type tap struct {
	ctx   context.Context // ends what is taken of a watch
	watch bool
	// read reads a list and returns what is answered instead.
	read func(req *http.Request, body io.Reader, f wire.Format) ([]byte, error)
	// made, if set, is what is answered to a watch; it ends there. Else nothing is, until that is closed.
	made func(req *http.Request) []byte

	mu   sync.Mutex
	over bool // the call has returned: what is asked later, on a goroutine that it left behind, is not for us
	got  caught
}

// errOver is met by who reads a list after the call that it was asked in.
var errOver = errors.New("the list was not read while its ListerWatcher was called")

// caught is what a tap has of a call.
type caught struct {
	asked  bool          // there was a request
	broken bool          // a request had no answer
	unfit  string        // why answers are left alone
	taken  int           // answers
	body   io.ReadCloser // of the last one, where it is a watch
	format wire.Format
}

// mark returns a context under which requests are tapped.
func (t *tap) mark(ctx context.Context) context.Context { return context.WithValue(ctx, tapKey{}, t) }

// wants tells whether a request is the one for the collection. What is read besides it is left alone; what is
// written must not be written again, which it would be if the answer were taken in vain.
func (t *tap) wants(req *http.Request, base string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.got.asked = true
	switch {
	case t.got.unfit != "":
		return false
	case req.Method != http.MethodGet:
		t.got.unfit = "it writes, too"
		return false
	case !isCollection(belowBase(req.URL.Path, base)):
		return false
	}
	if v := req.URL.Query().Get("watch"); (v == "true" || v == "1") != t.watch {
		t.got.unfit = "it lists in order to watch, or watches in order to list"
		return false
	}
	return true
}

// belowBase is a path below that of the server's address.
func belowBase(path, base string) string {
	return strings.TrimPrefix(path, strings.TrimSuffix(base, "/"))
}

// isCollection tells whether a path is that of a resource's objects, all or those of a namespace.
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

func (t *tap) tapList(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	f := t.take(resp, err, nil)
	if f == 0 {
		return resp, err
	}
	return madeUp(resp, &listAnswer{body: resp.Body, read: func(body io.Reader) ([]byte, error) { return t.read(req, body, f) }}), nil
}

// tapWatch keeps the answer beyond the end of the caller's request, which comes with that of the made-up one.
func (t *tap) tapWatch(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	theirs := context.AfterFunc(req.Context(), cancel)
	resp, err := next.RoundTrip(req.WithContext(ctx))
	var made io.ReadCloser = newSilence(req.Context())
	f := t.take(resp, err, func() io.ReadCloser {
		theirs()
		ours := context.AfterFunc(t.ctx, cancel)
		if t.made != nil {
			made = io.NopCloser(bytes.NewReader(t.made(req)))
		}
		return &ending{resp.Body, func() { ours(); cancel() }}
	})
	switch {
	case err != nil:
		theirs()
		cancel()
		return nil, err
	case f == 0:
		resp.Body = &ending{resp.Body, func() { theirs(); cancel() }}
		return resp, nil
	}
	return madeUp(resp, made), nil
}

// take tells what an answer is in that is taken; 0 is one that is not. keep, of a watch, returns its body. It is
// called where the call has not returned yet, and cannot until then.
func (t *tap) take(resp *http.Response, err error, keep func() io.ReadCloser) wire.Format {
	if err == nil {
		request.Uncompress(resp)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.got.broken = true
		return 0
	}
	if t.over || resp.StatusCode != http.StatusOK {
		return 0
	}
	f := request.FormatOf(resp)
	if f == 0 {
		t.got.unfit = "the server answers in " + resp.Header.Get("Content-Type")
		return 0
	}
	t.got.taken++
	if keep != nil {
		t.got.drop()
		t.got.body, t.got.format = keep(), f
	}
	return f
}

// note has what was read of an answer noted while the call is under way.
func (t *tap) note(f func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return errOver
	}
	f()
	return nil
}

// end returns what was caught, once the call has returned. What its goroutines ask from now on passes through.
func (t *tap) end() caught {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over, t.made = true, nil // a watch keeps its context, and so us
	return t.got
}

// drop closes what is open.
func (c *caught) drop() {
	if c.body != nil {
		_ = c.body.Close()
	}
}

// elsewhere tells that a server has refused what we did not see.
func (c *caught) elsewhere(err error) bool {
	return !c.asked && errors.As(err, new(apierrors.APIStatus))
}

// reason is why nothing was taken of what was answered.
func (c *caught) reason() error {
	if c.unfit != "" {
		return errors.New(c.unfit)
	}
	return errElsewhere
}

// madeUp is an answer with another body.
func madeUp(resp *http.Response, body io.ReadCloser) *http.Response {
	made := *resp
	made.Header = resp.Header.Clone()
	made.Header.Set("Content-Type", "application/json")
	made.Header.Del("Content-Length")
	made.Body, made.ContentLength = body, -1
	return &made
}

// listAnswer reads the server's list when it is read, so that whoever asked meets the errors of that.
type listAnswer struct {
	body io.ReadCloser
	read func(io.Reader) ([]byte, error)
	rest *bytes.Reader
	err  error
}

// Read implements io.Reader.
func (a *listAnswer) Read(p []byte) (int, error) {
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
func (a *listAnswer) Close() error { return a.body.Close() }

// ending is a body with something to do at its end.
type ending struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer. Nothing is heard of a connection after that.
func (e *ending) Close() error {
	e.end()
	return e.ReadCloser.Close()
}

// silence is a body that says nothing until it is closed, or its request ends.
type silence struct {
	asked  context.Context // of the request
	once   sync.Once
	closed chan struct{}
}

func newSilence(asked context.Context) *silence {
	return &silence{asked: asked, closed: make(chan struct{})}
}

// Read implements io.Reader.
func (s *silence) Read([]byte) (int, error) {
	select {
	case <-s.closed:
		return 0, io.EOF
	case <-s.asked.Done():
		return 0, s.asked.Err()
	}
}

// Close implements io.Closer.
func (s *silence) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
