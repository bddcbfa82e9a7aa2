package auth

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
)

// served serves a handler, and returns the address.
func served(t *testing.T, a *Auth, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

// client returns a client that trusts a CA, with a certificate if there is one.
func client(t *testing.T, ca *authority, certs ...tls.Certificate) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// fetch returns the status and body of a GET.
func fetch(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, From(r.Context()).String()) })

// TestReload: a new certificate is served, and a new CA is trusted instead of the old one, without a restart.
func TestReload(t *testing.T) {
	log, text := logged()
	ca, old, other := newCA(t, "ca"), newCA(t, "old"), newCA(t, "new")
	cert, key := ca.serving("127.0.0.1")
	a := mustNew(t, Options{Address: "127.0.0.1:0", Cert: cert, Key: key, ClientCA: old.file, Reviewer: &fake{}, Log: log})
	url := "https://" + served(t, a, hello)
	alice, bob := old.issue("alice", nil, nil), other.issue("bob", nil, nil)
	if code, who := fetch(t, client(t, ca, alice), url); code != 200 || who != "alice" {
		t.Errorf("%d %s", code, who)
	}
	keeping := client(t, ca, alice) // its connection stays open
	if code, who := fetch(t, keeping, url); code != 200 {
		t.Errorf("%d %s", code, who)
	}

	replace := func(file, by string) {
		text, err := os.ReadFile(by)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	until := func(why string, is func() bool) {
		t.Helper()
		for deadline := time.After(time.Minute); !is(); {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-deadline:
				t.Fatalf("not within a minute: %s; logged %s", why, text)
			}
		}
	}
	replace(old.file, other.file)
	until("the old CA is no longer trusted", func() bool { code, _ := fetch(t, keeping, url); return code == 401 })
	if code, who := fetch(t, client(t, ca, bob), url); code != 200 || who != "bob" {
		t.Errorf("the new CA: %d %s", code, who)
	}

	// A certificate whose key is not there yet is not served.
	next := newCA(t, "next")
	cert2, key2 := next.serving("127.0.0.1")
	replace(cert, cert2)
	until("the mismatch is noticed", func() bool {
		_, _ = fetch(t, client(t, ca, bob), url)
		return strings.Contains(text.String(), "cannot read changed files")
	})
	if code, who := fetch(t, client(t, ca, bob), url); code != 200 {
		t.Errorf("between the files: %d %s", code, who)
	}
	replace(key, key2)
	until("the new certificate", func() bool { code, _ := fetch(t, client(t, next, bob), url); return code == 200 })
	if code, who := fetch(t, client(t, ca, bob), url); code == 200 {
		t.Errorf("the old certificate is still served: %s", who)
	}
	if err := os.Remove(old.file); err != nil {
		t.Fatal(err)
	}
	until("the missing file is noticed", func() bool {
		_, _ = fetch(t, client(t, next, bob), url)
		return strings.Contains(text.String(), "no such file")
	})
	if code, _ := fetch(t, client(t, next, bob), url); code != 200 {
		t.Errorf("a file that is missing for a moment locks everyone out: %d", code)
	}
}

// TestStream: a stream outlives the timeouts of other answers, in HTTP/1 and HTTP/2, ends with the server, and with
// the credential.
func TestStream(t *testing.T) {
	ca := newCA(t, "ca")
	cert, key := ca.serving("127.0.0.1")
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // each takes its time
			a := mustNew(t, Options{Address: "127.0.0.1:0", Cert: cert, Key: key})
			const long = 2500 * time.Millisecond // enough for a slow machine to begin
			a.timeouts = timeouts{header: time.Minute, read: long, write: long, grace: time.Minute}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended, left := make(chan error, 1), make(chan struct{})
			go func() {
				ended <- a.Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Proto != protocol {
						t.Errorf("%s, want %s", r.Proto, protocol)
					}
					s, err := NewStream(w, r)
					if err != nil {
						t.Error(err)
						return
					}
					defer close(left)
					defer s.Close()
					for {
						select {
						case <-s.Context().Done():
							return
						case <-time.After(long + long/10): // longer than the timeouts
						}
						if _, err := s.Write([]byte("data: x\n\n")); err != nil {
							t.Errorf("%s: %v", protocol, err)
							return
						}
					}
				}))
			}()
			c := client(t, ca)
			c.Transport.(*http.Transport).ForceAttemptHTTP2 = protocol == "HTTP/2.0"
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(resp.Body)
			for range 2 {
				if line, err := lines.ReadString('x'); err != nil || !strings.HasSuffix(line, "data: x") {
					t.Fatalf("%s: %q, %v", protocol, line, err)
				}
			}
			stopped := time.Now()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			<-left
			if took := time.Since(stopped); took >= a.timeouts.grace {
				t.Errorf("%s: the stream held up the end for %s", protocol, took)
			}
			resp.Body.Close()
			c.CloseIdleConnections()
		})
	}
}

// streamWriter is an answer to a stream that ignores deadlines.
type streamWriter struct{ *httptest.ResponseRecorder }

func (streamWriter) SetWriteDeadline(time.Time) error { return nil }

// TestStreamVerifiesAgain: a stream ends when its credential no longer counts, or is another's.
func TestStreamVerifiesAgain(t *testing.T) {
	for _, tc := range []struct {
		why    string
		change func(*fake)
		want   string // of the error; empty: none
	}{
		{"nothing changed", func(*fake) {}, ""},
		{"the token is revoked", func(f *fake) { delete(f.tokens, "good") }, "not valid here"},
		{"the user is in another group", func(f *fake) { f.tokens["good"] = authentication.UserInfo{Username: "bob", Groups: []string{"x"}} }, "someone else"},
		{"the API server is away", func(f *fake) { f.err = errDown }, errDown.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{tokens: map[string]authentication.UserInfo{"good": {Username: "bob"}}}
			a := mustNew(t, Options{Address: "localhost:80", Tokens: true, Reviewer: f})
			a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s, err := NewStream(w, r)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				f.set(func() { tc.change(f) })
				time.Sleep(recheck - 1)
				if _, err := s.Write([]byte("a")); err != nil {
					t.Errorf("%s, within the time: %v", tc.why, err)
				}
				time.Sleep(time.Nanosecond)
				_, err = s.Write([]byte("b"))
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
				}
			})).ServeHTTP(streamWriter{httptest.NewRecorder()}, request(t, "GET", "localhost", nil, "Authorization: Bearer good"))
		})
	}
	if _, err := NewStream(httptest.NewRecorder(), request(t, "GET", "localhost", nil)); !errors.Is(err, errNoViewer) {
		t.Errorf("without Wrap: %v", err)
	}
}

// TestLimits: a viewer cannot take what others need.
func TestLimits(t *testing.T) {
	f := &fake{tokens: map[string]authentication.UserInfo{"a": {Username: "alice"}, "b": {Username: "bob"}, "a2": {Username: "alice"}}}
	a := mustNew(t, Options{Address: "localhost:80", Tokens: true, Reviewer: f})
	release, entered := make(chan struct{}), make(chan struct{})
	slow := a.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-release }))
	done := make(chan struct{})
	for range maxPerViewer {
		go func() {
			slow.ServeHTTP(httptest.NewRecorder(), request(t, "GET", "localhost", nil, "Authorization: Bearer a"))
			done <- struct{}{}
		}()
		<-entered
	}
	code := func(token string) int {
		return answered(a, request(t, "GET", "localhost", nil, "Authorization: Bearer "+token)).Code
	}
	if one, other, same := code("a"), code("b"), code("a2"); one != 429 || other != 200 || same != 429 {
		t.Errorf("the viewer %d, another %d, the viewer with another token %d", one, other, same)
	}
	close(release)
	for range maxPerViewer {
		<-done
	}
	if got := code("a"); got != 200 || len(a.viewers.used) != 0 {
		t.Errorf("after the end: %d, %v", got, a.viewers.used)
	}
	for range maxRequests {
		a.requests <- struct{}{}
	}
	if got := code("b"); got != 503 {
		t.Errorf("all places taken: %d", got)
	}
}

// TestBody: a body is limited.
func TestBody(t *testing.T) {
	a := mustNew(t, Options{})
	r := request(t, "POST", "localhost", nil, "Sec-Fetch-Site: same-origin")
	r.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", maxBody+1)))
	a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		var tooLarge *http.MaxBytesError
		if n != maxBody || !errors.As(err, &tooLarge) {
			t.Errorf("read %d, %v", n, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}

// TestAuditOfAPanic: what failed in the middle is in the log as well.
func TestAuditOfAPanic(t *testing.T) {
	log, text := logged()
	a := mustNew(t, Options{Log: log})
	func() {
		defer func() { _ = recover() }()
		a.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("ours") })).
			ServeHTTP(httptest.NewRecorder(), request(t, "POST", "localhost", nil, "Sec-Fetch-Site: same-origin"))
	}()
	if !strings.Contains(text.String(), `viewer="this machine" path=/path status=500`) {
		t.Errorf("logged %q", text)
	}
	if len(a.requests) != 0 || len(a.viewers.used) != 0 {
		t.Error("its place is not free")
	}
}

// TestServeRefusesExposure: the listener counts, not what was configured.
func TestServeRefusesExposure(t *testing.T) {
	for why, o := range map[string]Options{
		"open":        {Address: "localhost:0"},
		"without TLS": {Address: "localhost:0", Tokens: true, Reviewer: &fake{}},
	} {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		if err := mustNew(t, o).Serve(t.Context(), l, hello); err == nil || !strings.Contains(err.Error(), "other machines can reach") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestNew: options that would expose the page, or lock everyone out.
func TestNew(t *testing.T) {
	ca := newCA(t, "ca")
	cert, key := ca.serving("localhost")
	empty := write(t, "empty", "")
	proxy := RequestHeader{CA: ca.file, AllowedNames: []string{"p"}}
	for _, tc := range []struct {
		why  string
		o    Options
		want string // of the error; empty: none
	}{
		{"open on loopback", Options{Address: "[::1]:80"}, ""},
		{"open, without an address", Options{}, ""},
		{"open with TLS", Options{Address: "localhost:443", Cert: cert, Key: key}, ""},
		{"open elsewhere", Options{Address: ":80"}, "other machines need TLS (web.tls) and authentication"},
		{"open on a name", Options{Address: "laptop:80"}, "other machines need TLS"},
		{"TLS without authentication", Options{Address: "0.0.0.0:443", Cert: cert, Key: key}, "and authentication"},
		{"authentication without TLS", Options{Address: "10.0.0.1:80", Tokens: true, Reviewer: &fake{}}, "need TLS"},
		{"client certificates without TLS", Options{ClientCA: ca.file, Reviewer: &fake{}}, "client certificates need TLS"},
		{"a certificate without its key", Options{Cert: cert}, "belong together"},
		{"a proxy by any name", Options{Cert: cert, Key: key, RequestHeader: RequestHeader{CA: ca.file}, Reviewer: &fake{}}, "allowedNames"},
		{"an open page with names", Options{Hosts: []string{"x"}}, "leave out web.hosts"},
		{"no reviewer", Options{Tokens: true}, "without a Reviewer"},
		{"a key of another certificate", Options{Cert: cert, Key: ca.file}, "read " + cert},
		{"a file that is not there", Options{Cert: cert, Key: key + "x"}, "no such file"},
		{"a CA without certificates", Options{Cert: cert, Key: key, ClientCA: empty, Reviewer: &fake{}}, "no PEM certificate"},
		{"everything", Options{Address: ":443", Cert: cert, Key: key, Tokens: true, ClientCA: ca.file, RequestHeader: proxy, Reviewer: &fake{}}, ""},
	} {
		_, err := New(tc.o)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
		tc.o.Reviewer = nil
		if invalid := tc.o.Check(); (invalid == nil) != (err == nil || tc.why == "no reviewer") {
			t.Errorf("%s: Validate returns %v", tc.why, invalid)
		}
	}
}

// TestComplaints: a failing API server does not fill the log.
func TestComplaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := logged()
		a := mustNew(t, Options{Tokens: true, Reviewer: &fake{err: errDown}, Log: log})
		for i := range 50 {
			_ = answered(a, request(t, "GET", "localhost", nil, fmt.Sprint("Authorization: Bearer t", i)))
			time.Sleep(2 * time.Second)
		}
		if n := strings.Count(text.String(), "level=WARN"); n != 2 {
			t.Errorf("%d warnings in 100 s, want 2:\n%s", n, text)
		}
	})
}
