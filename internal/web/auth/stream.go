package auth

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// recheck is how often a stream's credentials are verified again.
const recheck = 10 * time.Second

// endKey is the key of the context that ends when the server begins to end.
type endKey struct{}

// Stream is an answer that lasts, such as server-sent events. The server's timeouts do not end it, but each write
// must end within one, so that a client that does not read is dropped. It is for one goroutine.
//
// The credentials are verified again with writes, at most every 10 seconds: write a comment now and then when
// there is nothing to send. Rights are not verified here: call Viewer.May for each event.
type Stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	viewer   *Viewer
	ctx      context.Context
	cancel   context.CancelFunc
	stop     func() bool
	verified time.Time
	timeout  time.Duration
	leave    sync.Once
}

// ErrStreams means that a viewer has too many streams.
var ErrStreams = fmt.Errorf("you have %d live pages already: close one", maxStreams)

// NewStream begins a stream in a handler that Auth.Wrap protects. The caller closes it. The error is ErrStreams if the
// viewer has too many.
func NewStream(w http.ResponseWriter, r *http.Request) (*Stream, error) {
	s := &Stream{w: w, control: http.NewResponseController(w), viewer: From(r.Context()), verified: time.Now()}
	if s.viewer == nil {
		return nil, errNoViewer
	}
	s.timeout = s.viewer.timeout
	if !s.viewer.streams.enter(s.viewer.key) {
		return nil, ErrStreams
	}
	if err := s.control.SetWriteDeadline(time.Time{}); err != nil {
		s.viewer.streams.leave(s.viewer.key)
		return nil, fmt.Errorf("begin stream: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(r.Context())
	s.stop = func() bool { return true }
	if end, ok := r.Context().Value(endKey{}).(context.Context); ok {
		s.stop = context.AfterFunc(end, s.cancel)
	}
	return s, nil
}

// Context ends with the request, and when the server begins to end.
func (s *Stream) Context() context.Context { return s.ctx }

// Write sends to the client at once. An error means that the stream is over: the client is gone or too slow, or
// its credentials are no longer valid.
func (s *Stream) Write(b []byte) (int, error) {
	if now := time.Now(); s.viewer.again != nil && now.Sub(s.verified) >= recheck {
		if err := s.viewer.again(s.ctx); err != nil {
			return 0, fmt.Errorf("verify viewer again: %w", err)
		}
		s.verified = now
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, fmt.Errorf("write to stream: %w", err)
	}
	n, err := s.w.Write(b)
	if err == nil {
		err = s.control.Flush()
	}
	if err == nil {
		err = s.control.SetWriteDeadline(time.Time{}) // HTTP/2 would reset a stream that is idle for longer
	}
	return n, err
}

// Close releases the stream's resources. The handler's return ends the answer.
func (s *Stream) Close() {
	s.stop()
	s.cancel()
	s.leave.Do(func() { s.viewer.streams.leave(s.viewer.key) })
}
