package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// pauses is a daemon that notes who pauses its sink.
type pauses struct {
	control.Orders
	by chan string
}

func (p pauses) Pause(ctx context.Context, sink string, paused bool) error {
	if sink != "hook" || !paused {
		return control.Refuse("not this")
	}
	p.by <- control.GivenBy(ctx)
	return nil
}

// runDaemon serves the socket beside a journal until the result is called.
func runDaemon(t *testing.T, path string, orders control.Orders) (stop func()) {
	t.Helper()
	l, err := control.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	status := func(context.Context) (control.Status, error) {
		return control.Status{Sinks: []control.Sink{{Name: "hook", To: "webhook", State: "running"}}}, nil
	}
	go func(l net.Listener) { ended <- control.Serve(ctx, l, control.Options{Status: status, Orders: orders}) }(l)
	return func() {
		cancel()
		if err := errors.Join(<-ended, control.Remove(path)); err != nil {
			t.Error(err)
		}
	}
}

// TestOrders: the page gives orders to the daemon that writes the journal. Without one, it shows what the journal has.
func TestOrders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	letter := journal.DeadLetter{Sink: "hook", Seq: 1, ID: "x", Reason: "400 <Bad>", Attempts: 1}
	_, err = j.SetAside(t.Context(), letter)
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := &Options{IO: &terminal.IO{Out: io.Discard, Err: &bytes.Buffer{}}, Listen: "127.0.0.1:0", Open: true}
	o.Past.Path = path
	opened := make(chan string, 1)
	o.Browser = func(_ context.Context, url string) error {
		opened <- url
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	page := <-opened
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(method, target string) (int, string) {
		form := url.Values{"do": {"pause"}, "sink": {"hook"}}
		r, err := http.NewRequestWithContext(t.Context(), method, page+target, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	check := func(why, method, target string, code int, texts ...string) {
		t.Helper()
		got, body := send(method, target)
		if got != code {
			t.Errorf("%s: %d, want %d", why, got, code)
		}
		for _, text := range texts {
			if not, absent := strings.CutPrefix(text, "!"); strings.Contains(body, not) == absent {
				t.Errorf("%s: %q in\n%s", why, text, body)
			}
		}
	}
	check("without a daemon", http.MethodGet, "status/sink?name=hook", http.StatusOK, "No daemon records into "+path, "400 &lt;Bad&gt;", "!Pause …")
	check("an order without a daemon", http.MethodPost, "status/order", http.StatusServiceUnavailable, "start tattler run")
	by := make(chan string, 1)
	stop := runDaemon(t, path, pauses{by: by})
	check("with a daemon", http.MethodGet, "status/sink?name=hook", http.StatusOK, "Pause …", "!No daemon")
	check("an order", http.MethodPost, "status/order", http.StatusOK, "hook is paused: new changes wait in the journal")
	select {
	case who := <-by:
		if who != "this machine, on the web page" {
			t.Errorf("given by %q", who)
		}
	default:
		t.Error("the daemon received no order")
	}
	stop()
	check("the daemon has gone", http.MethodPost, "status/order", http.StatusServiceUnavailable, "start tattler run")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
