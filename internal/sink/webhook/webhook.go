// Package webhook is the sink that posts each change to a URL: as a CloudEvent in structured JSON, or with
// a body made by a template.
//
// An answer of 2xx acknowledges. What is wrong with a message (400, 422, …) is permanent; one that is too long
// (413) is cut. What is wrong with the receiver or the way to it passes: no connection, no answer in time,
// 5xx, 408, 425, 429, and also a redirect, which is not followed, the refusals 401, 402, 403, 404, 405, 407,
// 410, 421, 426 and 431, and a 400 about TLS: a revoked token must not turn each change
// into a dead letter. Retry-After is kept. The proxy of the
// environment (HTTPS_PROXY, …) is used. No error shows a credential: of the URL only scheme and host, of
// an answer only its beginning, with what we sent as credentials blotted out.
package webhook

import (
	"bytes"
	"context"
	"errors"
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
	place    string // the URL, as far as it may be shown
	key      []byte
	template *template.Template
	header   http.Header
	blot     *sink.Blot
	client   *http.Client

	mu     sync.Mutex // Close may come from another goroutine than Send
	closed bool
}

// New makes a sink; it reads the files of TLS, and connects with the first Send. The agent is the
// User-Agent, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("webhook sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), blot: blotter(o)}
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
	transport, err := newTransport(s.o)
	if err != nil {
		return nil, fmt.Errorf("webhook sink: tls: %w", err)
	}
	s.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

func (s *Sink) String() string { return "webhook " + s.place }

// Close closes idle connections; no other is there after Send.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.client.CloseIdleConnections()
	return nil
}

// Send posts messages, those of one object one after the other.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, fmt.Errorf("post to %s: the sink is closed", s.place)
	}
	// Each lane has the messages of some objects; it ends at its first error, so that nothing overtakes.
	errs := make([]error, len(ms))
	var lanes sync.WaitGroup
	for _, lane := range split(ms, s.o.Parallel) {
		lanes.Go(func() {
			for n, i := range lane {
				if errs[i] = s.post(ctx, ms[i]); errs[i] != nil {
					for _, later := range lane[n+1:] {
						errs[later] = errs[i]
					}
					return
				}
			}
		})
	}
	lanes.Wait()
	for i, err := range errs {
		if err != nil {
			return i, err
		}
	}
	return len(ms), nil
}

// split deals out the indexes of messages to at most n lanes, those of one key to the same.
func split(ms []sink.Message, n int) [][]int {
	lanes := make([][]int, n)
	lane := map[string]int{}
	for i, m := range ms {
		l, ok := lane[m.Key]
		if !ok {
			l = len(lane) % n
			lane[m.Key] = l
		}
		lanes[l] = append(lanes[l], i)
	}
	return lanes
}

// post posts one message.
func (s *Sink) post(ctx context.Context, m sink.Message) error {
	body := m.Body
	if s.template != nil {
		var err error
		if body, err = render(s.template, m.Event, s.header.Get("Content-Type")); err != nil {
			return &sink.PermanentError{Err: fmt.Errorf("make body: %w", err)}
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
	// The beginning tells people what is wrong; a body read to its end lets the connection be used again.
	// What is longer costs the connection.
	const most = 64 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // the status has said all that matters
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return s.refused(resp, text)
}

// failed is about a request without an answer.
func (s *Sink) failed(err error) error {
	var of *url.Error // it shows the URL
	if errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("post to %s: %w", s.place, s.blot.Error(err))
}

// refused is about an answer that does not acknowledge.
func (s *Sink) refused(resp *http.Response, text []byte) error {
	err := fmt.Errorf("post to %s: %s", s.place, status(resp.StatusCode))
	if said := s.blot.Excerpt(text); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound,
		code == http.StatusMethodNotAllowed, code == http.StatusProxyAuthRequired, code == http.StatusGone,
		code == http.StatusMisdirectedRequest, code == http.StatusRequestTimeout, code == http.StatusTooEarly,
		code == http.StatusTooManyRequests, code == http.StatusPaymentRequired, code == http.StatusUpgradeRequired,
		code == http.StatusRequestHeaderFieldsTooLarge, code/100 != 4, aboutTLS(code, text):
		if after, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
			return &sink.RetryAfterError{After: after, Err: err}
		}
		return err
	case code == http.StatusRequestEntityTooLarge:
		return &sink.TooLargeError{Err: err}
	}
	return &sink.PermanentError{Err: err}
}

// aboutTLS tells of a 400 that is about http in the place of https, as net/http and nginx say it, or about our
// certificate, as nginx says it.
func aboutTLS(code int, text []byte) bool {
	if code != http.StatusBadRequest {
		return false
	}
	return slices.ContainsFunc([]string{
		"HTTP request to an HTTPS server", "HTTP request was sent to HTTPS port", "SSL certificate error", "No required SSL certificate",
	}, func(words string) bool { return bytes.Contains(text, []byte(words)) })
}

// status is a code and its name; not the text that the receiver gave it.
func status(code int) string {
	s := strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
	if code/100 == 3 {
		s += " (redirects are not followed)"
	}
	return s
}

// retryAfter reads the header's two forms: seconds, or a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	const most = 365 * 24 * time.Hour
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return time.Duration(min(n, int(most/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), most), true
	}
	return 0, false
}
