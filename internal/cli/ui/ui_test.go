package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/usage"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServe opens the page in a browser, and answers only for loopback names.
func TestServe(t *testing.T) {
	var out, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := &Options{IO: &terminal.IO{Out: &out, Err: &stderr}, Listen: "127.0.0.1:0", Open: true}
	o.Past.Path = written(t)
	opened := make(chan string, 1)
	o.Browser = func(_ context.Context, url string) error {
		opened <- url
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	url := <-opened
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(host string) (int, string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
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
	if code, body := get(""); code != http.StatusOK || !strings.Contains(body, "Changes in test") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := get("evil.example.com"); code == http.StatusOK {
		t.Errorf("another host: %d %s", code, body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if out.String() != url+"\n" {
		t.Errorf("printed %q", &out)
	}
}

// TestOnlyLoopback: without authentication, other machines must not reach the page.
func TestOnlyLoopback(t *testing.T) {
	o := &Options{IO: &terminal.IO{Out: io.Discard, Err: io.Discard}, Listen: "0.0.0.0:0"}
	o.Past.Path = written(t)
	err := Run(t.Context(), o)
	var wrong *usage.Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "loopback address only") {
		t.Errorf("%v", err)
	}
}
