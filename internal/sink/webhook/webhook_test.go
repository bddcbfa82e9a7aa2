package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// serve runs a receiver for the test, and a sink for it.
func serve(t *testing.T, o Options, f http.HandlerFunc) *Sink {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	if o.URL == "" {
		o.URL = server.URL
	}
	return newSink(t, o)
}

func newSink(t *testing.T, o Options) *Sink {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = long
	}
	s := must(New("tattler/test", o))(t)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

const (
	acknowledged = "acknowledged"
	permanent    = "permanent"
	passing      = "passing"
	cut          = "to be cut"
)

// verdict returns the kind of an error, and its wait.
func verdict(err error) (string, time.Duration) {
	var p *sink.PermanentError
	var r *sink.RetryAfterError
	var long *sink.TooLargeError
	switch {
	case err == nil:
		return acknowledged, 0
	case errors.As(err, &long):
		return cut, 0
	case errors.As(err, &p):
		return permanent, 0
	case errors.As(err, &r):
		return passing, r.After
	}
	return passing, 0
}

// TestNoRepeats: while one object's change is not accepted, the changes of others that were posted beside it are not posted
// again.
func TestNoRepeats(t *testing.T) {
	const count, failing, failures = 40, 5, 4
	id := sinktest.Event(failing).ID
	var mu sync.Mutex
	accepted, refused := map[string]int{}, 0
	s := serve(t, Options{Parallel: 8}, func(w http.ResponseWriter, r *http.Request) {
		var e struct{ ID string }
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if e.ID == id && refused < failures {
			refused++
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		accepted[e.ID]++
	})
	store := &sinktest.Store{}
	for n := range count {
		store.Append(sinktest.Item(n))
	}
	p := must(deliver.New(deliver.Options{
		Name: "hook", Sink: s, Store: store, From: deliver.Beginning, Retry: deliver.Retry{Min: time.Millisecond, Max: 2 * time.Millisecond},
	}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for p.Status().Cursor < count && t.Context().Err() == nil {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for n := range count {
		if got := accepted[sinktest.Event(n).ID]; got != 1 {
			t.Errorf("change %d was accepted %d times", n, got)
		}
	}
	if status := p.Status(); status.Delivered != count || refused != failures {
		t.Errorf("%d delivered, %d refused", status.Delivered, refused)
	}
}

func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		code int
		want string
		why  string
	}{
		{200, acknowledged, "done"},
		{201, acknowledged, "done"},
		{202, acknowledged, "accepted is a promise of the receiver"},
		{204, acknowledged, "done, and silent"},
		{299, acknowledged, "whatever it means, it is a success"},
		{300, passing, "not followed: the configuration is to be corrected"},
		{301, passing, "not followed: credentials would go elsewhere"},
		{302, passing, "such as to a page for signing in"},
		{307, passing, "not followed"},
		{304, passing, "no sense in answer to a post"},
		{400, permanent, "the message is wrong"},
		{401, passing, "a revoked token is not the message's fault"},
		{402, passing, "somebody has to pay, whatever the message"},
		{403, passing, "a right that was lost is not the message's fault"},
		{404, passing, "the receiver is not there (yet)"},
		{405, passing, "the URL is another thing's"},
		{406, permanent, "the message has the wrong form"},
		{407, passing, "the proxy's"},
		{408, passing, "too slow this time"},
		{409, permanent, "this message is in conflict"},
		{410, passing, "the receiver has gone: a person has to look"},
		{413, cut, "the message is too long"},
		{415, permanent, "the message has the wrong form"},
		{421, passing, "the wrong server"},
		{422, permanent, "the message is wrong"},
		{425, passing, "too early"},
		{426, passing, "another protocol, whatever the message"},
		{429, passing, "too many"},
		{431, passing, "the headers are those of the configuration"},
		{500, passing, "the receiver's fault"},
		{501, passing, "the receiver's fault"},
		{502, passing, "a proxy's fault"},
		{503, passing, "overloaded"},
		{504, passing, "a proxy's fault"},
		{599, passing, "whatever it means"},
	} {
		s := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tc.code)
		})
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if got, _ := verdict(err); got != tc.want {
			t.Errorf("%d is %s, want %s: %s", tc.code, got, tc.want, tc.why)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprint(tc.code)) {
			t.Errorf("%d: %v does not say so", tc.code, err)
		}
	}
}

// TestPlainToTLS: an http URL for an https server fails for every message.
func TestPlainToTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	s, err := New("tattler/test", Options{URL: "http" + strings.TrimPrefix(server.URL, "https")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	_, err = s.Send(t.Context(), sinktest.Messages(0, 1))
	if got, _ := verdict(err); got != passing || !strings.Contains(err.Error(), "400") {
		t.Errorf("%s: %v", got, err)
	}
}

// TestAboutTLS: nginx's error about our certificate concerns every message.
func TestAboutTLS(t *testing.T) {
	for _, said := range []string{"<title>400 The SSL certificate error</title>", "<title>400 No required SSL certificate was sent</title>"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, said, http.StatusBadRequest) }))
		s, err := New("tattler/test", Options{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Send(t.Context(), sinktest.Messages(0, 1))
		if got, _ := verdict(err); got != passing {
			t.Errorf("%s: %s: %v", said, got, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}

// TestRetryAfter checks which statuses keep the wait.
func TestRetryAfter(t *testing.T) {
	for code, want := range map[int]time.Duration{429: 9 * time.Second, 503: 9 * time.Second, 302: 9 * time.Second, 400: 0} {
		s := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(code)
		})
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if _, got := verdict(err); got != want {
			t.Errorf("%d asks to wait %s, want %s", code, got, want)
		}
	}
}

// TestRequest checks what the receiver gets.
func TestRequest(t *testing.T) {
	m := sinktest.Messages(0, 1)[0]
	var got *http.Request
	var body []byte
	s := serve(t, Options{Headers: map[string]string{"authorization": "Bearer abc", "X-Team": "shop"}}, func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	})
	if _, err := s.Send(t.Context(), []sink.Message{m}); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || string(body) != string(m.Body) || got.ContentLength != int64(len(m.Body)) {
		t.Errorf("%s of %d bytes %q", got.Method, got.ContentLength, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/cloudevents+json; charset=UTF-8", "User-Agent": "tattler/test",
		"Authorization": "Bearer abc", "X-Team": "shop", "Webhook-Signature": "",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

// long bounds, on a loaded machine, what should end by itself.
const long = time.Minute

// TestNotAnswered checks that a request without a response ends, whatever happens to it, and is tried again.
func TestNotAnswered(t *testing.T) {
	noNames(t)
	quit := make(chan struct{})
	defer close(quit)
	hang := func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client has gone
		select {
		case <-quit:
		case <-r.Context().Done():
		}
	}
	const soon = 300 * time.Millisecond // where only the timeout ends the request
	for _, tc := range []struct {
		why     string
		url     string
		f       http.HandlerFunc
		timeout time.Duration
		want    string
	}{
		{"nobody listens", "http://127.0.0.1:1", nil, long, "connection refused"},
		{"a name that is invalid", "http://tattler.invalid", nil, long, "lookup"},
		{"no answer", "", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, soon, "deadline exceeded"},
		{"reset", "", func(w http.ResponseWriter, _ *http.Request) { reset(t, w) }, long, ""},
		{"headers that do not end", "", func(w http.ResponseWriter, r *http.Request) {
			raw(t, w, func(c net.Conn) {
				for {
					if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: "); err != nil {
						return
					}
					<-time.After(10 * time.Millisecond)
				}
			})
		}, soon, ""},
		{"headers without end, fast", "", func(w http.ResponseWriter, _ *http.Request) {
			raw(t, w, func(c net.Conn) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: "+strings.Repeat("a", 1<<20))
			})
		}, long, ""},
		{"no HTTP", "", func(w http.ResponseWriter, _ *http.Request) {
			raw(t, w, func(c net.Conn) { _, _ = io.WriteString(c, "220 mail ready\r\n") })
		}, long, "malformed"},
		{hangingText, "", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			hang(r)
		}, long, "500 Internal Server Error: begin"},
		{"an error with a text without end", "", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for range 1000 {
				if _, err := io.WriteString(w, strings.Repeat("long ", 1000)); err != nil {
					return
				}
			}
		}, long, "long long"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			s := serve(t, Options{URL: tc.url, Timeout: tc.timeout}, tc.f)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.why == hangingText {
				s.client.Transport = noticing{s.client.Transport.(*http.Transport), cancel}
			}
			began := time.Now()
			n, err := s.Send(ctx, sinktest.Messages(0, 2))
			if got, _ := verdict(err); n != 0 || got != passing || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%d, %v; want a passing error with %q", n, err, tc.want)
			}
			if took := time.Since(began); took >= long {
				t.Errorf("took %s", took)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

const hangingText = "an error whose text hangs"

// noNames makes every lookup of a name fail, without a server.
func noNames(t *testing.T) {
	was := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	t.Cleanup(func() { net.DefaultResolver = was })
}

// noticing calls read when the client has read a part of an answer's text.
type noticing struct {
	*http.Transport
	read func()
}

func (n noticing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.Transport.RoundTrip(r)
	if err == nil {
		resp.Body = noticed{resp.Body, n.read}
	}
	return resp, err
}

type noticed struct {
	io.ReadCloser
	read func()
}

func (n noticed) Read(b []byte) (int, error) {
	k, err := n.ReadCloser.Read(b)
	if k > 0 {
		n.read()
	}
	return k, err
}

func raw(t *testing.T, w http.ResponseWriter, f func(net.Conn)) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	f(conn)
	conn.Close()
}

// TestAcknowledgedWhateverItSays: after a 2xx status, nothing is an error.
func TestAcknowledgedWhateverItSays(t *testing.T) {
	s := serve(t, Options{Timeout: long}, func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := io.WriteString(w, strings.Repeat("thanks ", 1000)); err != nil {
				return
			}
		}
	})
	if n, err := s.Send(t.Context(), sinktest.Messages(0, 3)); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestRedirectsAreNotFollowed checks that neither body nor headers go to another place.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer other.Close()
	s := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if got, _ := verdict(err); got != passing || followed.Load() || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Errorf("%v; followed: %v", err, followed.Load())
	}
}

// TestConnectionIsUsedAgain checks that one connection serves all requests of a lane, even after refusals. In a bubble, net/http
// does not give up a connection because of a goroutine that is late.
func TestConnectionIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var connections, requests atomic.Int32
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{ReadHeaderTimeout: long, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1)%2 == 0 {
				http.Error(w, "not this time", http.StatusServiceUnavailable)
			}
		})}
		ended := make(chan error)
		go func() { ended <- server.Serve(l) }()
		s := must(New("tattler/test", Options{URL: "http://127.0.0.1"}))(t)
		s.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			connections.Add(1)
			ours, theirs := net.Pipe()
			l.conns <- theirs
			return ours, nil
		}
		for range 20 {
			_, err := s.Send(t.Context(), sinktest.Messages(0, 2))
			if got, _ := verdict(err); got != passing {
				t.Fatal(err)
			}
		}
		if n := connections.Load(); n != 1 {
			t.Errorf("%d connections for %d requests", n, requests.Load())
		}
		if err := errors.Join(s.Close(t.Context()), server.Close()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// pipes is a listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// TestParallel checks that objects do not wait for each other, and that the changes of each stay in order.
func TestParallel(t *testing.T) {
	var mu sync.Mutex
	var got []string
	var now, most int
	var full bool
	three := make(chan struct{})
	ms := sinktest.Messages(0, 30)
	bad := ms[4].ID
	s := serve(t, Options{Parallel: 3}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		i := slices.IndexFunc(ms, func(m sink.Message) bool { return string(m.Body) == string(body) })
		mu.Lock()
		now++
		most = max(most, now)
		if now == 3 && !full {
			full = true
			close(three)
		}
		mu.Unlock()
		select {
		case <-three: // the first three requests wait for each other
		case <-r.Context().Done():
		}
		<-time.After(time.Duration(i%3) * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		now--
		if ms[i].ID == bad {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got = append(got, ms[i].ID)
	})
	acked, err := s.Send(t.Context(), ms)
	if v, _ := verdict(err); acked != 4 || v != permanent {
		t.Fatalf("acknowledged %d, %v; want the 4 before the first that was refused", acked, err)
	}
	for _, i := range []int{7, 10, 28} {
		if slices.Contains(got, ms[i].ID) {
			t.Errorf("message %d overtook the one that was refused", i)
		}
	}
	bad = ""
	if n, err := s.Send(t.Context(), ms[4:]); n != 26 || err != nil {
		t.Fatal(n, err)
	}
	place := map[string]int{}
	for at, id := range got {
		if _, ok := place[id]; !ok {
			place[id] = at
		}
	}
	for i := 3; i < len(ms); i++ {
		if place[ms[i].ID] < place[ms[i-3].ID] {
			t.Errorf("message %d came before %d of the same object", i, i-3)
		}
	}
	if most != 3 {
		t.Errorf("%d requests at a time, want 3", most)
	}
}

// TestSuccessor: an object and the next one of its name are two objects, so with parallel requests the creation of the second
// may arrive before the deletion of the first.
func TestSuccessor(t *testing.T) {
	for _, parallel := range []int{1, 2} {
		ms := sinktest.Messages(0, 2)
		ms[0].Key, ms[1].Key = "uid-1", "uid-2"
		next := make(chan struct{})
		if parallel == 1 {
			close(next) // the creation is not sent meanwhile
		}
		var mu sync.Mutex
		var got []string
		s := serve(t, Options{Parallel: parallel}, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			what := "creation"
			if string(body) == string(ms[0].Body) {
				what = "deletion"
				<-next
			}
			mu.Lock()
			defer mu.Unlock()
			if got = append(got, what); what == "creation" && parallel > 1 {
				close(next)
			}
		})
		if n, err := s.Send(t.Context(), ms); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		want := []string{"deletion", "creation"}
		if parallel > 1 {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d at a time: %v, want %v", parallel, got, want)
		}
	}
}
