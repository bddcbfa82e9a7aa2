package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// rig runs one reflector against a server played by the test, request by request.
type rig struct {
	*testing.T
	on       *Reflector
	sink     *sink
	requests chan *request
	notes    []Note
	asked    []*request // all requests, in order
}

// scripted runs a test in a synctest bubble. change may set up the reflector and its sink.
func scripted(t *testing.T, change func(*rig), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, sink: &sink{}, requests: make(chan *request)}
		r.on = &Reflector{
			Open:    r.open,
			Sink:    r.sink,
			Lists:   make(chan struct{}, 1),
			Timing:  DefaultTiming,
			Observe: func(n Note) { r.notes = append(r.notes, n) },
		}
		if change != nil {
			change(r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.on.Run(ctx)
		}()
		test(r)
		cancel()
		<-over
		if r.on.m.State != Stopped || len(r.on.Lists) != 0 {
			t.Errorf("ended as %v, with %d lists", r.on.m.State, len(r.on.Lists))
		}
	})
}

// request is a request received by the server.
type request struct {
	rig    *rig
	ctx    context.Context
	query  url.Values
	watch  bool
	answer chan answer
	body   *io.PipeWriter // nil before accept
	closed bool           // by the reflector
}

type answer struct {
	err    error
	format wire.Format
	body   io.ReadCloser
}

// open is the Opener; the test answers.
func (r *rig) open(ctx context.Context, watch bool, query url.Values) (io.ReadCloser, wire.Format, error) {
	for _, q := range r.asked {
		if beside := q.watch && r.on.m.throttled; beside { // it was accepted, and waits for the probe
			continue
		}
		if q.ctx.Err() == nil || q.body != nil && !q.closed {
			r.Errorf("%s was not given up: %v, closed: %v", q, q.ctx.Err(), q.closed)
		}
	}
	q := &request{rig: r, ctx: ctx, query: query, watch: watch, answer: make(chan answer)}
	r.asked = append(r.asked, q)
	select {
	case r.requests <- q:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	select {
	case a := <-q.answer:
		if a.err == nil {
			context.AfterFunc(ctx, func() { _ = q.body.CloseWithError(ctx.Err()) })
		}
		return a.body, a.format, a.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// body is the response body that the reflector reads.
type body struct {
	io.Reader
	of *request
}

func (b body) Close() error {
	b.of.closed = true
	return nil
}

// String describes the request.
func (q *request) String() string {
	get := q.query.Get
	switch {
	case q.watch && get("sendInitialEvents") == "true":
		return "stream"
	case q.watch && len(get("timeoutSeconds")) == 1:
		return "watch " + get("resourceVersion") + " for " + get("timeoutSeconds") + "s"
	case q.watch:
		return "watch " + get("resourceVersion")
	case get("limit") == "1":
		return "probe"
	case get("limit") == "":
		return "list whole"
	}
	return strings.TrimSpace("list " + get("continue"))
}

// next waits for the next request, which must be want.
func (r *rig) next(want string) *request {
	r.Helper()
	q := <-r.requests
	if q.String() != want {
		r.Fatalf("the next request is %q, want %q; the sink received %s", q, want, r.taken())
	}
	return q
}

// within is next; the request must come after at least least and before most.
func (r *rig) within(least, most time.Duration, want string) *request {
	r.Helper()
	asked := time.Now()
	q := r.next(want)
	if d := time.Since(asked); d < least || d >= most {
		r.Errorf("%q after %v, want %v to %v", want, d, least, most)
	}
	return q
}

// pass lets time pass and checks that no request arrives.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	select {
	case q := <-r.requests:
		r.Fatalf("request %q within %v", q, d)
	case <-time.After(d):
	}
	synctest.Wait()
}

// want compares the sink's log since the last call, and clears it.
func (r *rig) want(what string, log ...string) {
	r.Helper()
	if got, want := r.taken(), strings.Join(log, ", "); got != want {
		r.Errorf("%s: the sink received\n%s\nwant\n%s", what, got, want)
	}
}

// taken returns and clears the sink's log.
func (r *rig) taken() string {
	synctest.Wait()
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	log := strings.Join(r.sink.log, ", ")
	r.sink.log = nil
	return log
}

// current checks the number of Current calls.
func (r *rig) current(want int) {
	r.Helper()
	synctest.Wait()
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	if r.sink.current != want {
		r.Errorf("the sink received Current %d times, want %d", r.sink.current, want)
	}
}

// state returns the last reported machine.
func (r *rig) state() Machine {
	synctest.Wait()
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	return r.sink.last
}

// refuse answers with a status.
func (q *request) refuse(code int32, reason metav1.StatusReason) {
	q.answer <- answer{err: refusal(code, reason, 0)}
}

func refusal(code int32, reason metav1.StatusReason, after int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason,
		Details: &metav1.StatusDetails{RetryAfterSeconds: after}}}
}

// accept begins a response.
func (q *request) accept() *request { return q.acceptAs(wire.JSON) }

func (q *request) acceptAs(f wire.Format) *request {
	r, w := io.Pipe()
	q.body = w
	q.answer <- answer{format: f, body: body{r, q}}
	return q
}

// send sends a part of the body and waits until the reflector has processed it.
func (q *request) send(parts ...string) *request {
	q.rig.Helper()
	for _, p := range parts {
		if _, err := io.WriteString(q.body, p); err != nil {
			q.rig.Fatalf("%s: the reflector has gone: %v", q, err)
		}
	}
	synctest.Wait()
	return q
}

// finish ends the body as a server does.
func (q *request) finish() {
	_ = q.body.Close()
	synctest.Wait()
}

// cut breaks the connection.
func (q *request) cut() {
	_ = q.body.CloseWithError(errors.New("connection reset"))
	synctest.Wait()
}

// list answers with one page.
func (q *request) list(version, next string, items ...string) {
	q.accept().send(page(version, next, items...)).finish()
}

func page(version, next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`,
		version, next, strings.Join(items, ","))
}

func object(name, version string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":%q}}`, name, version)
}

func frame(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}

func added(name, version string) string    { return frame(wire.Added, object(name, version)) }
func modified(name, version string) string { return frame(wire.Modified, object(name, version)) }
func deleted(name, version string) string  { return frame(wire.Deleted, object(name, version)) }

func bookmark(version string) string {
	return frame(wire.Bookmark, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":%q}}`, version))
}

func end(version string) string {
	return frame(wire.Bookmark, fmt.Sprintf(
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}`, version))
}

func failure(code int, reason metav1.StatusReason) string {
	return frame(wire.Error, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, reason))
}
