package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// post sends a message to a web service.
func (s *Sink) post(ctx context.Context, m *Message, text string) error {
	body, err := s.target.payload(m, text)
	if err != nil {
		return &sink.PermanentError{Err: fmt.Errorf("encode the message: %w", err)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target.post.String(), bytes.NewReader(body))
	if err != nil {
		return errURL
	}
	req.Header.Set("User-Agent", s.agent)
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	resp, err := s.client.Do(req)
	if err != nil {
		return sink.NoURL(err)
	}
	defer resp.Body.Close()
	const maxRead = 64 << 10
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxRead)) // the status decides, even if the body cannot be read
	code := resp.StatusCode
	if s.target.service == Teams && code/100 == 2 {
		code = connector(said, code)
	}
	if code/100 == 2 {
		return nil
	}
	return s.refused(code, resp.Header, said)
}

// connector returns the status that an old connector of Teams hides in the text of a 200.
func connector(said []byte, code int) int {
	_, after, found := strings.Cut(string(said), "Microsoft Teams endpoint returned HTTP error ")
	if n, err := strconv.Atoi(after[:min(3, len(after))]); found && err == nil && n >= 300 {
		return n
	}
	return code
}

// refused describes a response that does not acknowledge.
func (s *Sink) refused(code int, h http.Header, said []byte) error {
	err := fmt.Errorf("%s%s", strings.TrimSpace(strconv.Itoa(code)+" "+http.StatusText(code)), advice(s.target.service, code, string(said)))
	if text := s.mask.Excerpt(said); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	if after, ok := retryAfter(h, said); ok {
		return &sink.RetryAfterError{After: after, Err: err}
	}
	if s.permanent(code, string(said)) {
		return &sink.PermanentError{Err: err}
	}
	return err
}

// permanent reports whether a response blames the message, and not the webhook, the chat, the channel or their
// setup. An error that every message would get must not set every change aside, so a 400 counts only if its text is
// known to be about a message.
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
	case Telegram: // answers 400 to nearly every mistake
		return has("parse entities", "too long", "text is empty", "text must be")
	case Slack:
		return has("invalid_payload", "invalid_blocks", "invalid_attachments", "too_many_attachments", "msg_too_long", "no_text", "missing_text")
	case Discord: // a malformed form, an empty message, moderation; 220001 is a forum that needs a thread
		return has("50035") && !has("thread_id", "webhook_id") || has("50006", "200000", "200001", "240000")
	case Mattermost:
		return has("split_props_length", "incoming_webhook.text", "post.is_valid", "too_long", "too_large")
	case Teams: // also answers 400 for a disabled workflow, or one with a different trigger
		return has("payload", "Summary or Text", "too large")
	}
	return false
}

// advice suggests what to do about a response.
func advice(service Service, code int, said string) string {
	switch {
	case code/100 == 3:
		return " (redirects are not followed: is the URL the service's own?)"
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return " (the webhook or token may no longer post there: check it, or create a new one)"
	case code == http.StatusNotFound, code == http.StatusGone:
		return " (the webhook, chat or channel no longer exists: create a new one)"
	case code == http.StatusBadRequest && service == Discord && strings.Contains(said, "thread"):
		return " (a webhook of a forum needs ?thread_id=)"
	case code == http.StatusBadRequest && service == Teams:
		return " (is the workflow enabled, and made from the template for webhook requests?)"
	case code == http.StatusBadRequest && service == Telegram:
		return " (is the bot in the chat, and is the chat's name right?)"
	}
	return ""
}

// retryAfter returns the wait that a response asks for, by Retry-After or in the body, as Discord and Telegram do.
func retryAfter(h http.Header, said []byte) (time.Duration, bool) {
	const maxWait = 24 * time.Hour
	if wait, ok := sink.RetryAfter(h.Get("Retry-After"), maxWait); ok {
		return wait, true
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
		return sink.Seconds(n, maxWait), true
	}
	return 0, false
}

// newMask masks the credentials of the options: a receiver may echo them.
func newMask(o Options) *sink.Mask {
	b := &sink.Mask{}
	b.AddProxies()
	b.Add(sink.MinWord, o.URL)
	t, err := parseTarget(o.URL, o.Service)
	if err != nil {
		return b
	}
	b.Add(1, t.mail.password, "\x00"+t.mail.user+"\x00"+t.mail.password) // the form of PLAIN
	u, err := url.Parse(o.URL)
	if err != nil {
		return b
	}
	b.AddUser(u.User)
	if t.service == email { // the rest is addresses, which errors may show
		return b
	}
	if t.service == others {
		b.Add(sink.MinWord, u.Host)
	}
	for _, a := range []*url.URL{u, t.post} {
		if a == nil {
			continue
		}
		b.Add(sink.MinWord, a.User.Username(), a.RequestURI(), a.RawQuery)
		for _, part := range strings.FieldsFunc(a.Path, func(r rune) bool { return r == '/' }) {
			b.Add(sink.MinWord, strings.TrimPrefix(part, "bot"), part)
		}
		for _, values := range a.Query() {
			b.Add(sink.MinWord, values...)
		}
	}
	return b
}
