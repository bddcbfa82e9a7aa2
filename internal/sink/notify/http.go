package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// newClient speaks to one host, one request at a time, by the proxy of the environment. Redirects are not
// followed: a message is not for others.
func newClient(c *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:        c,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        90 * time.Second,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends a message to a web service.
func (s *Sink) post(ctx context.Context, m *Message, text string) error {
	body, err := s.target.payload(m, text)
	if err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("make the message: %w", err)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target.post.String(), bytes.NewReader(body))
	if err != nil {
		return errURL
	}
	req.Header.Set("User-Agent", s.agent)
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	resp, err := s.client.Do(req)
	if err != nil {
		var of *url.Error // it shows the URL
		if errors.As(err, &of) {
			err = of.Err
		}
		return err
	}
	defer resp.Body.Close()
	const most = 64 << 10
	said, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // the status has said all that matters
	code := resp.StatusCode
	if s.target.service == Teams && code/100 == 2 {
		code = connector(said, code)
	}
	if code/100 == 2 {
		return nil
	}
	return s.refused(code, resp.Header, said)
}

// connector is the status that an old connector of Teams hides in the text of an answer of 200.
func connector(said []byte, code int) int {
	_, after, found := strings.Cut(string(said), "Microsoft Teams endpoint returned HTTP error ")
	if n, err := strconv.Atoi(after[:min(3, len(after))]); found && err == nil && n >= 300 {
		return n
	}
	return code
}

// refused is about an answer that does not acknowledge.
func (s *Sink) refused(code int, h http.Header, said []byte) error {
	err := fmt.Errorf("%s%s", strings.TrimSpace(strconv.Itoa(code)+" "+http.StatusText(code)), advice(s.target.service, code, string(said)))
	if text := s.blot.Excerpt(said); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	if after, ok := asked(h, said); ok {
		return &sink.RetryAfterError{After: after, Err: err}
	}
	if s.permanent(code, string(said)) {
		return &sink.PermanentError{Err: err}
	}
	return err
}

// permanent tells whether a message is to blame, and not the webhook, the chat, the channel or how it is set up:
// what would be said of every message must not bury every change. So of 400 only what is known to be about a
// message is.
func (s *Sink) permanent(code int, said string) bool {
	switch code {
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	case http.StatusBadRequest:
	default:
		return false
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	switch s.target.service {
	case Telegram: // says 400 of nearly everything
		return has("parse entities", "too long", "text is empty", "text must be")
	case Slack:
		return has("invalid_payload", "invalid_blocks", "invalid_attachments", "too_many_attachments", "msg_too_long", "no_text", "missing_text")
	case Discord: // a malformed form, nothing in it, blocked by moderation; a forum that wants a thread is 220001
		return has("50035") && !has("thread_id", "webhook_id") || has("50006", "200000", "200001", "240000")
	case Mattermost:
		return has("split_props_length", "incoming_webhook.text", "post.is_valid", "too_long", "too_large")
	case Teams: // a workflow that is off says 400, and one whose trigger expects something else
		return has("payload", "Summary or Text", "too large")
	}
	return false
}

// advice says what to do about an answer.
func advice(service Service, code int, said string) string {
	switch {
	case code/100 == 3:
		return " (redirects are not followed: is the URL the service's own?)"
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return " (the webhook or token is not allowed to post there any more: check it, or make a new one)"
	case code == http.StatusNotFound, code == http.StatusGone:
		return " (the webhook, chat or channel is not there any more: make a new one)"
	case code == http.StatusBadRequest && service == Discord && strings.Contains(said, "thread"):
		return " (a forum's webhook needs ?thread_id=)"
	case code == http.StatusBadRequest && service == Teams:
		return " (is the workflow on, and made by the template for webhook requests?)"
	case code == http.StatusBadRequest && service == Telegram:
		return " (is the bot in the chat, and the chat's name right?)"
	}
	return ""
}

// asked is the wait that an answer asks for: by Retry-After, or as Discord and Telegram do in its body.
func asked(h http.Header, said []byte) (time.Duration, bool) {
	const most = 24 * time.Hour
	if n, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil && n >= 0 {
		return seconds(n, most), true
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(0, time.Until(at)), most), true
	}
	var body struct {
		RetryAfter float64 `json:"retry_after"`
		Parameters struct {
			RetryAfter float64 `json:"retry_after"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(said, &body); err != nil {
		return 0, false
	}
	if n := max(body.RetryAfter, body.Parameters.RetryAfter); n > 0 {
		return seconds(n, most), true
	}
	return 0, false
}

func seconds(n float64, most time.Duration) time.Duration {
	return time.Duration(math.Min(n, most.Seconds()) * float64(time.Second))
}

// blotter knows the credentials of the options: a receiver may send back what it got.
func blotter(o Options) *sink.Blot {
	b := &sink.Blot{}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		b.Add(sink.LeastPassword, os.Getenv(name)) // net/http quotes it where it is wrong
	}
	b.Add(sink.LeastWord, o.URL)
	t, err := parseTarget(o.URL, o.Service)
	if err != nil {
		return b
	}
	b.Add(1, t.mail.password, "\x00"+t.mail.user+"\x00"+t.mail.password) // which is how PLAIN has it
	u, err := url.Parse(o.URL)
	if err != nil {
		return b
	}
	b.AddUser(u.User)
	if t.service == email { // the rest is addresses, which an error may tell
		return b
	}
	if t.service == others {
		b.Add(sink.LeastWord, u.Host)
	}
	for _, a := range []*url.URL{u, t.post} {
		if a == nil {
			continue
		}
		b.Add(sink.LeastWord, a.User.Username(), a.RequestURI(), a.RawQuery)
		for _, part := range strings.FieldsFunc(a.Path, func(r rune) bool { return r == '/' }) {
			b.Add(sink.LeastWord, strings.TrimPrefix(part, "bot"), part)
		}
		for _, values := range a.Query() {
			b.Add(sink.LeastWord, values...)
		}
	}
	return b
}
