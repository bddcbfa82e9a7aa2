// Package webhook is the sink that posts each change to a URL: as a CloudEvent in structured JSON, or with
// a body made by a template.
//
// A 2xx response acknowledges. A response about the message (400, 422, …) is permanent; 413 makes the pump cut it.
// Errors of the receiver or the network are temporary: no connection, a timeout, 5xx, 408, 425, 429. So are
// redirects, which the sink does not follow, the statuses 401, 402, 403, 404, 405, 407, 410, 421, 426 and 431, and a
// 400 about TLS: a revoked token must not turn every change into a dead letter. The sink honours Retry-After, and
// uses the proxy of the environment (HTTPS_PROXY, …). Errors show only the scheme and host of the URL, and only
// the beginning of a response, with the credentials of the request masked.
package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink posts to a URL.
type Sink struct {
	o        Options
	url      *url.URL
	place    string // scheme and host of the URL
	key      []byte
	template *template.Template
	header   http.Header
	mask     *sink.Mask
	client   *http.Client

	mu     sync.Mutex // Close may run concurrently with Send
	closed bool
}

// New returns a sink. It reads the TLS files, and connects with the first Send. The agent is the User-Agent, such as
// tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("webhook sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), mask: newMask(o)}
	s.url, _ = parseURL(o.URL)
	s.place = s.url.Scheme + "://" + s.url.Host
	s.key, _ = key(o.Secret)
	s.template, _ = parseTemplate(o.Template)
	s.header = http.Header{"User-Agent": {agent}, "Content-Type": {"application/cloudevents+json; charset=UTF-8"}}
	if s.template != nil {
		s.header.Set("Content-Type", "application/json")
	}
	for name, value := range o.Headers {
		s.header.Set(name, value)
	}
	config, err := s.o.TLS.Client()
	if err != nil {
		return nil, fmt.Errorf("webhook sink: tls: %w", err)
	}
	s.client = sink.HTTPClient(config, s.o.Parallel)
	return s, nil
}

func (s *Sink) String() string { return "webhook " + s.place }

// Close closes idle connections. After Send there are no others.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.client.CloseIdleConnections()
	return nil
}

// Send posts messages. Those of one object are posted one after the other.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, s.failed(sink.ErrClosed)
	}
	if s.o.Parallel == 1 { // keeps the order of all messages
		return s.each(ctx, ms)
	}
	return sink.SendByKey(ctx, ms, s.o.Parallel, s.each)
}

// each posts messages one after the other until the first error.
func (s *Sink) each(ctx context.Context, ms []sink.Message) (acked int, err error) {
	for i, m := range ms {
		if err := s.post(ctx, m); err != nil {
			return i, err
		}
	}
	return len(ms), nil
}

// post posts one message.
func (s *Sink) post(ctx context.Context, m sink.Message) error {
	body := m.Body
	if s.template != nil {
		var err error
		if body, err = render(s.template, m.Event, s.header.Get("Content-Type")); err != nil {
			return &sink.PermanentError{Err: fmt.Errorf("render body: %w", err)}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.URL, bytes.NewReader(body))
	if err != nil {
		return s.failed(err)
	}
	req.Header = s.header.Clone()
	if s.key != nil {
		sign(req.Header, s.key, m.ID, time.Now(), body)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return s.failed(err)
	}
	defer resp.Body.Close()
	// The beginning of the body goes into the error. Reading it to the end lets the connection be reused; a longer
	// body costs the connection.
	const maxRead = 64 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRead)) // the status decides, even if the body cannot be read
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return s.refused(resp, text)
}

// failed describes a request without a response.
func (s *Sink) failed(err error) error {
	return s.mask.Wrap("post to "+s.place, sink.NoURL(err))
}

// refused describes a response that does not acknowledge.
func (s *Sink) refused(resp *http.Response, text []byte) error {
	err := fmt.Errorf("post to %s: %s", s.place, status(resp.StatusCode))
	if said := s.mask.Excerpt(text); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound,
		code == http.StatusMethodNotAllowed, code == http.StatusProxyAuthRequired, code == http.StatusGone,
		code == http.StatusMisdirectedRequest, code == http.StatusRequestTimeout, code == http.StatusTooEarly,
		code == http.StatusTooManyRequests, code == http.StatusPaymentRequired, code == http.StatusUpgradeRequired,
		code == http.StatusRequestHeaderFieldsTooLarge, code/100 != 4, aboutTLS(code, text):
		if after, ok := sink.RetryAfter(resp.Header.Get("Retry-After"), sink.LongestWait); ok {
			return &sink.RetryAfterError{After: after, Err: err}
		}
		return err
	case code == http.StatusRequestEntityTooLarge:
		return &sink.TooLargeError{Err: err}
	}
	return &sink.PermanentError{Err: err}
}

// aboutTLS reports whether a 400 is about plain HTTP sent to an HTTPS port (as net/http and nginx word it) or about
// our certificate (nginx).
func aboutTLS(code int, text []byte) bool {
	if code != http.StatusBadRequest {
		return false
	}
	return slices.ContainsFunc([]string{
		"HTTP request to an HTTPS server", "HTTP request was sent to HTTPS port", "SSL certificate error", "No required SSL certificate",
	}, func(words string) bool { return bytes.Contains(text, []byte(words)) })
}

// status returns a code and its standard name, not the receiver's text.
func status(code int) string {
	s := strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
	if code/100 == 3 {
		s += " (redirects are not followed)"
	}
	return s
}
