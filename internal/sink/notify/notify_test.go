package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestAnswers checks the outcome of each answer of a service.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		why       string
		service   Service
		code      int
		header    string // Retry-After
		body      string
		permanent bool
		after     time.Duration
		want      string
	}{
		{"all is well", Slack, 200, "", "ok", false, 0, ""},
		{"Teams takes it later", Teams, 202, "", "", false, 0, ""},
		{"a payload that Slack cannot read", Slack, 400, "", "invalid_payload", true, 0, "invalid_payload"},
		{"a channel that is not there passes", Slack, 404, "", "channel_not_found", false, 0, "create a new one"},
		{"an archived one, too", Slack, 410, "", "channel_is_archived", false, 0, "channel_is_archived"},
		{"a webhook that was revoked", Slack, 403, "", "invalid_token", false, 0, "check it, or create a new one"},
		{"and said with 400", Slack, 400, "", "no_team", false, 0, "no_team"},
		{"busy, in whole seconds", Slack, 429, "30", "rate_limited", false, 30 * time.Second, "429"},
		{"busy, in parts of one", Discord, 429, "", `{"message": "You are being rate limited.", "retry_after": 0.5}`, false, 500 * time.Millisecond, "429"},
		{"busy, as Telegram says it", Telegram, 429, "", `{"ok":false,"parameters":{"retry_after":7}}`, false, 7 * time.Second, "429"},
		{"a year is too long", Slack, 429, "31536000", "", false, 24 * time.Hour, "429"},
		{"a chat that is not there passes", Telegram, 400, "", `{"description":"Bad Request: chat not found"}`, false, 0, "is the bot in the chat"},
		{"a text that Telegram cannot read", Telegram, 400, "", `{"description":"Bad Request: can't parse entities"}`, true, 0, "parse entities"},
		{"a form that Discord does not take", Discord, 400, "", `{"code": 50035}`, true, 0, "50035"},
		{"an invalid thread passes", Discord, 400, "", `{"code": 50035, "errors": {"thread_id": {}}}`, false, 0, "50035"},
		{"a forum that wants a thread passes", Discord, 400, "", `{"message": "Webhooks posted to forum channels must have a thread_name or thread_id", "code": 220001}`, false, 0, "needs ?thread_id="},
		{"an unknown webhook", Discord, 404, "", `{"code": 10015}`, false, 0, "10015"},
		{"a text that Mattermost cannot read", Mattermost, 400, "", `{"id":"web.incoming_webhook.split_props_length.app_error"}`, true, 0, "split_props_length"},
		{"a server that wants TLS", Mattermost, 400, "", "Client sent an HTTP request to an HTTPS server.", false, 0, "HTTPS server"},
		{"a workflow that is off passes", Teams, 400, "", `{"error":{"code":"WorkflowTriggerIsNotEnabled"}}`, false, 0, "is the workflow enabled"},
		{"one that expects something else passes", Teams, 400, "", `{"error":{"code":"TriggerInputSchemaMismatch"}}`, false, 0, "is the workflow enabled"},
		{"a card that Teams cannot read", Teams, 400, "", "Bad payload received by generic incoming webhook.", true, 0, "Bad payload"},
		{"a workflow of Slack's that expects something else passes", Slack, 400, "", `{"ok":false,"error":"parameter_validation_failed"}`, false, 0, "validation"},
		{"another thing's server passes", Slack, 415, "", "", false, 0, "415"},
		{"a webhook that is off", Mattermost, 400, "", `{"id":"web.incoming_webhook.disabled.app_error"}`, false, 0, "disabled"},
		{"too long", Teams, 413, "", "", true, 0, "413"},
		{"what an old connector hides", Teams, 200, "", "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId", false, 0, "429"},
		{"and hides for good", Teams, 200, "", "Microsoft Teams endpoint returned HTTP error 413", true, 0, "413"},
		{"down", Teams, 502, "", "", false, 0, "502"},
		{"a redirect", Slack, 302, "", "", false, 0, "redirects are not followed"},
		{"our credential comes back", Slack, 500, "", "at /services/w0rdw0rdw0rd", false, 0, "***"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if tc.header != "" {
				w.Header().Set("Retry-After", tc.header)
			}
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(tc.code)
			_, _ = io.WriteString(w, tc.body)
		}))
		o := Options{URL: server.URL + "/services/w0rdw0rdw0rd?chat_id=1", Service: tc.service, Timeout: time.Minute}
		s := must(New("tattler/test", o))(t)
		acked, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		var permanent *sink.PermanentError
		var wish *sink.RetryAfterError
		switch {
		case tc.want == "":
			if acked != 1 || err != nil {
				t.Errorf("%s: %d, %v", tc.why, acked, err)
			}
		case err == nil || acked != 0 || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "send to "+string(tc.service)+" "):
			t.Errorf("%s: %d, %v, want %q", tc.why, acked, err, tc.want)
		case errors.As(err, &permanent) != tc.permanent, errors.As(err, &wish) != (tc.after > 0), tc.after > 0 && wish.After != tc.after:
			t.Errorf("%s: %#v", tc.why, err)
		case strings.Contains(err.Error(), w0rd):
			t.Errorf("%s: the error shows a credential: %v", tc.why, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}

// TestNobodyThere checks that connection errors show no credential.
func TestNobodyThere(t *testing.T) {
	const nobody = "127.0.0.1:1"
	for _, o := range []Options{
		{URL: "http://" + nobody + "/hooks/w0rdw0rdw0rd", Service: Mattermost},
		{URL: "smtp://user:w0rdw0rdw0rd@" + nobody + "/a@example.com?from=b@example.com"},
		{URL: "gotify://" + nobody + "/Aw0rdw0rdw0rdAA?disabletls=yes"},
		{URL: "ntfy://user:w0rdw0rdw0rd@" + nobody + "/topic?scheme=http"},
	} {
		s := must(New("tattler/test", o))(t)
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		var permanent *sink.PermanentError
		if err == nil || errors.As(err, &permanent) || strings.Contains(err.Error(), w0rd) {
			t.Errorf("%v", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestShoutrrr checks refusals and hanging calls of shoutrrr's services.
func TestShoutrrr(t *testing.T) {
	hang, hanging := make(chan struct{}), make(chan struct{})
	var code, calls atomic.Int64
	code.Store(http.StatusOK)
	const hangs = 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if code.Load() == hangs {
			close(hanging)
			<-hang
			return
		}
		w.WriteHeader(int(code.Load()))
		_, _ = io.WriteString(w, `{"error":"x"}`)
	}))
	defer server.Close()
	s := must(New("tattler/test", Options{URL: "generic://" + strings.TrimPrefix(server.URL, "http://") + "/w0rdw0rdw0rd?disabletls=yes", Timeout: 2 * time.Minute}))(t)
	defer s.Close(t.Context())
	send := func(ctx context.Context) error {
		_, err := s.Send(ctx, sinktest.Messages(0, 1))
		return err
	}
	var permanent *sink.PermanentError
	if err := send(t.Context()); err != nil {
		t.Fatal(err)
	}
	code.Store(http.StatusRequestEntityTooLarge)
	if err := send(t.Context()); !errors.As(err, &permanent) {
		t.Errorf("refused: %v", err)
	}
	code.Store(http.StatusBadRequest) // Pushover's answer to a wrong token
	if err := send(t.Context()); err == nil || errors.As(err, &permanent) {
		t.Errorf("refused without a known reason: %v", err)
	}
	code.Store(http.StatusUnauthorized)
	if err := send(t.Context()); err == nil || errors.As(err, &permanent) {
		t.Errorf("not allowed: %v", err)
	}
	code.Store(hangs)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hanging
		cancel()
	}()
	if err := send(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a service that hangs: %v", err)
	}
	if err := s.shout.send(ctx, "title", "text"); err == nil || !strings.Contains(err.Error(), "still being sent") {
		t.Errorf("after it: %v", err)
	}
	close(hang)
	code.Store(http.StatusOK)
	if err := send(t.Context()); err != nil {
		t.Errorf("once it has ended: %v", err)
	}
	if n := calls.Load(); n != 5 {
		t.Errorf("%d calls, want 5: what arrived late is not sent again", n)
	}
}

// nobody is a sink whose messages go nowhere, so that no network is needed; it counts them.
func nobody(t *testing.T, o Options) (s *Sink, titles *[]string) {
	t.Helper()
	titles = &[]string{}
	o.URL = "https://chat.test/hooks/x"
	o.Service = Mattermost
	s = must(New("tattler/test", o))(t)
	s.client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		text, _, _ := strings.Cut(string(body), ` · prod`)
		*titles = append(*titles, fmt.Sprint(time.Now().UTC().Format("15:04:05 "), text[strings.LastIndex(text, `"`)+1:]))
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, err
	})}
	return s, titles
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPumped checks that a pump flushes windows, quiet hours and digests when they are due. A synctest bubble starts
// at midnight, 2000-01-01.
func TestPumped(t *testing.T) {
	for _, tc := range []struct {
		why    string
		o      Options
		cursor int64 // half an hour after the last change
		want   string
	}{
		{"each by itself", Options{}, 6, "00:00:00 Deployment shop/web-0 updated|00:00:00 Deployment shop/web-1 updated|00:00:00 Deployment shop/web-2 updated|06:00:00 Deployment shop/web-0 updated|06:00:00 Deployment shop/web-1 updated|06:00:00 Deployment shop/web-2 updated"},
		{"windows", Options{Window: time.Minute}, 6, "00:01:00 3 changes: 3 updated|06:01:00 3 changes: 3 updated"},
		{"quiet hours", Options{Window: time.Minute, Timezone: "UTC", QuietHours: QuietHours{From: "23:00", To: "05:00"}}, 6, "05:00:00 3 changes: 3 updated|06:01:00 3 changes: 3 updated"},
		{"quiet hours without a window", Options{Timezone: "UTC", QuietHours: QuietHours{From: "23:00", To: "07:00"}}, 0, "07:00:00 6 changes: 6 updated"},
		{"a digest", Options{Window: time.Minute, Timezone: "UTC", Digest: "08:00"}, 0, "08:00:00 6 changes: 6 updated"},
		{"a digest elsewhere", Options{Timezone: "Asia/Tokyo", Digest: "12:00"}, 3, "03:00:00 3 changes: 3 updated|03:00:00 3 changes: 3 updated"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, titles := nobody(t, tc.o)
			store := &sinktest.Store{}
			add := func(from int) {
				for n := range 3 {
					item := sinktest.Item(from + n)
					item.Event().Data.Observed.At = time.Now()
					store.Append(item)
				}
			}
			p := must(deliver.New(deliver.Options{Name: "n", Sink: s, Store: store, From: deliver.Beginning}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			add(0)
			time.Sleep(6 * time.Hour)
			add(3)
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			if seq, _, err := store.Cursor(ctx, "n"); seq != tc.cursor || err != nil {
				t.Errorf("%s: the cursor is at %d, %v; want %d", tc.why, seq, err, tc.cursor)
			}
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if seq, _, err := store.Cursor(ctx, "n"); seq != 6 || err != nil {
				t.Errorf("%s: in the end the cursor is at %d, %v", tc.why, seq, err)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := strings.ReplaceAll(strings.Join(*titles, "|"), "🔵 **", ""); got != tc.want {
				t.Errorf("%s: %s\nwant %s", tc.why, got, tc.want)
			}
		})
	}
}

// TestClosed checks that a closed sink neither holds nor sends.
func TestClosed(t *testing.T) {
	s, titles := nobody(t, Options{Window: time.Hour})
	if n, err := s.Send(t.Context(), sinktest.Messages(0, 2)); n != 2 || err != nil || s.Due().IsZero() {
		t.Errorf("%d, %v, due %s", n, err, s.Due())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Flush(t.Context()); err == nil {
		t.Error("a closed sink tells")
	}
	s.Drop()
	if err := s.Flush(t.Context()); err != nil || !s.Due().IsZero() || len(*titles) != 0 {
		t.Errorf("nothing is held: %v, %s, %q", err, s.Due(), *titles)
	}
}
