package ops

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

// handlerOf returns the handler that Serve uses on a loopback address.
func handlerOf(ctx context.Context, o Options) *handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return newHandler(ctx, o, true)
}

// get sends one request to a new handler, in a bubble, so that the status is never late.
func get(t *testing.T, o Options, path string) (code int, body string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { code, body = ask(handlerOf(t.Context(), o), "GET", path, "localhost") })
	return code, body
}

func ask(h http.Handler, method, path, host string) (code int, body string) {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// serve runs a server, and returns its address and a function that ends it.
func serve(t *testing.T, o Options) (address string, stop func() error) {
	t.Helper()
	l, err := Listen(t.Context(), "web.address", "127.0.0.1:0", o.Pprof)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, o) }()
	stop = func() error {
		cancel()
		return <-done
	}
	return l.Addr().String(), stop
}

// TestProfileOutlastsTimeouts requests a profile that takes longer than other answers may.
func TestProfileOutlastsTimeouts(t *testing.T) {
	o := Options{Status: answering(control.Status{}), Pprof: true, Log: slog.New(slog.DiscardHandler)}
	srv := newServer(t.Context(), handlerOf(t.Context(), o), o)
	srv.WriteTimeout = time.Second
	l, err := Listen(t.Context(), "web.address", "127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	begin := time.Now()
	resp, err := client.Get("http://" + l.Addr().String() + "/debug/pprof/trace?seconds=1.1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if d := time.Since(begin); err != nil || len(body) == 0 || d < 1100*time.Millisecond {
		t.Errorf("%d bytes in %s, %v", len(body), d, err)
	}
	srv.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// client keeps no connections.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func TestServe(t *testing.T) {
	address, stop := serve(t, Options{Status: answering(control.Status{Settled: true})})
	for _, tc := range []struct {
		why, method, path string
		code              int
		body              string
	}{
		{"the index", "GET", "/", 200, "/readyz"},
		{"metrics", "GET", "/metrics", 200, "tattler_settled 1"},
		{"health", "GET", "/healthz", 200, "ok\n"},
		{"readiness", "GET", "/readyz", 200, "ok\n"},
		{"only the head", "HEAD", "/readyz", 200, ""},
		{"nothing is written here", "POST", "/metrics", 405, "Method Not Allowed"},
		{"not even deleted", "DELETE", "/", 405, "Method Not Allowed"},
		{"nothing else is here", "GET", "/metrics/", 404, "not found"},
		{"nor below", "GET", "/readyz/pods", 404, "not found"},
		{"no profiles unless asked for", "GET", "/debug/pprof/", 404, "not found"},
		{"nor globally registered handlers", "GET", "/debug/pprof/heap", 404, "not found"},
		{"no file", "GET", "/../../etc/passwd", 404, "not found"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+address+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tc.code || !strings.Contains(string(body), tc.body) || tc.body == "" && len(body) > 0 {
			t.Errorf("%s: %d: %s, %v", tc.why, resp.StatusCode, body, err)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", tc.why, resp.Header)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the port is still open")
	}
}

// TestHost requests hosts that a page in a browser of this machine could have pointed here.
func TestHost(t *testing.T) {
	o := Options{Status: answering(control.Status{Settled: true}), Address: "metrics.example.com:8080", Log: slog.New(slog.DiscardHandler)}
	for _, tc := range []struct {
		host    string
		local   bool
		answers bool
		why     string
	}{
		{"localhost:8080", true, true, "as one types it"},
		{"LocalHost", true, true, "names have no case"},
		{"localhost.", true, true, "with the root's dot"},
		{"127.0.0.1:8080", true, true, "the address"},
		{"127.8.9.1", true, true, "all of 127/8"},
		{"[::1]:8080", true, true, "of IPv6"},
		{"[::1]", true, true, "without a port"},
		{"metrics.example.com:9090", true, true, "the configured name, through a forwarded port"},
		{"", true, true, "HTTP/1.0, which no browser speaks"},
		{"evil.example.com:8080", true, false, "a name that now leads here"},
		{"localhost.evil.example.com", true, false, "same prefix"},
		{"127.0.0.1.evil.example.com", true, false, "same prefix as the address"},
		{"192.0.2.1:8080", true, false, "another address"},
		{"0.0.0.0:8080", true, false, "which browsers took for this machine"},
		{"evil.example.com:8080", false, true, "where everyone may ask, names mean nothing"},
	} {
		var code int
		var body string
		synctest.Test(t, func(t *testing.T) { code, body = ask(newHandler(t.Context(), o, tc.local), "GET", "/readyz", tc.host) })
		if want := map[bool]int{true: 200, false: 421}[tc.answers]; code != want {
			t.Errorf("%s (%s): %d: %s", tc.host, tc.why, code, body)
		}
	}
}

func TestProfiles(t *testing.T) {
	address, stop := serve(t, Options{Status: answering(control.Status{}), Pprof: true})
	for path, want := range map[string]string{
		"/debug/pprof/":                   "goroutine",
		"/debug/pprof/goroutine?debug=1":  "goroutine profile",
		"/debug/pprof/profile?seconds=1":  "\x1f\x8b", // gzip
		"/debug/pprof/trace?seconds=0.01": "go 1.",
		"/debug/pprof/symbol":             "num_symbols: 1",
		"/":                               "/debug/pprof/",
	} {
		resp, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: %d: %.100q", path, resp.StatusCode, body)
		}
	}
	for path, want := range map[string]int{
		"/debug/pprof/cmdline":              404, // arguments may hold credentials
		"/debug/pprof/profile?seconds=1000": 400, // longer than anyone waits
		"/debug/pprof/trace?seconds=1e9":    400,
		"/debug/pprof/trace?seconds=NaN":    400,
	} {
		resp, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	// The default one takes half a minute: it is accepted, and the server's end ends it.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/debug/pprof/profile?seconds=30", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestProfilesForOthers(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		l, err := Listen(t.Context(), "web.address", address, true)
		if !errors.Is(err, errExposed) {
			t.Errorf("%s: %v, %v", address, l, err)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := Listen(t.Context(), "web.address", address, true)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		l.Close()
	}
	l, err := Listen(t.Context(), "web.address", ":0", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), l, Options{Pprof: true}); !errors.Is(err, errExposed) {
		t.Errorf("a listener of others: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("left open: %v", err)
	}
}

func TestListen(t *testing.T) {
	taken, err := Listen(t.Context(), "web.address", "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct{ why, address, want string }{
		{"the port is taken", taken.Addr().String(), "address already in use: something has the port: stop it, or choose another web.address"},
		{"an address of another machine", "192.0.2.1:0", "this machine does not have the address"},
		{"no port", "127.0.0.1", "missing port"},
		{"no such port", "127.0.0.1:none-such", "none-such"},
		{"no such port number", "127.0.0.1:65536", "65536"},
	} {
		l, err := Listen(t.Context(), "web.address", tc.address, false)
		if err == nil || !strings.HasPrefix(err.Error(), "listen on "+tc.address+": ") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v", tc.why, l, err)
		}
	}
}

// TestEnd ends a server with a client that reads nothing, and a daemon that does not answer.
func TestEnd(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	address, stop := serve(t, Options{Status: func(ctx context.Context) (control.Status, error) {
		close(asked)
		<-ctx.Done()
		<-release
		return control.Status{}, ctx.Err()
	}})
	idle, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	begin := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("the end took %s", d)
	}
	close(release)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil && !strings.Contains(line, "503") {
		t.Errorf("a scrape of an ending server: %s", line)
	}
}

// TestBrokenListener ends a server whose listener fails.
func TestBrokenListener(t *testing.T) {
	l, err := Listen(t.Context(), "web.address", "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := Serve(t.Context(), l, Options{Status: answering(control.Status{})}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestLogSaysOnce why the status cannot be reported, and that it can be again.
func TestLogSaysOnce(t *testing.T) {
	var lines bytes.Buffer
	broken := true
	o := Options{Log: slog.New(slog.NewTextHandler(&lines, nil)), Status: func(context.Context) (control.Status, error) {
		if broken {
			return control.Status{}, errors.New("no room")
		}
		return control.Status{}, nil
	}}
	synctest.Test(t, func(t *testing.T) {
		h := handlerOf(t.Context(), o)
		for _, broken = range []bool{false, true, true, true, false, false} {
			ask(h, "GET", "/metrics", "")
		}
	})
	if got := lines.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "no room") != 1 || !strings.Contains(got, "again") {
		t.Error(got)
	}
}
