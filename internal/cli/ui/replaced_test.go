package ui

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// TestReplaced: if the journal's file is removed or replaced, the page says so, instead of a state that no longer changes.
func TestReplaced(t *testing.T) {
	path := written(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, stderr bytes.Buffer
	opened := make(chan string, 1)
	o := &Options{IO: &terminal.IO{Out: &out, Err: &stderr}, Listen: "127.0.0.1:0", Open: true, Browser: func(_ context.Context, url string) error {
		opened <- url
		return nil
	}}
	o.Past.Path = path
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	url := <-opened
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	begin := func(path string) (int, io.ReadCloser) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Body
	}
	rest := func(body io.ReadCloser) string {
		t.Helper()
		defer body.Close()
		b, err := io.ReadAll(body) // a live page ends as well
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	get := func(path string) (int, string) {
		t.Helper()
		code, body := begin(path)
		return code, rest(body)
	}
	if code, body := get(""); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	code, page := begin("live?after=0") // it is live before the file changes
	live := make(chan string, 1)
	go func() { live <- rest(page) }()
	aside := filepath.Join(filepath.Dir(path), "aside.db")
	for _, tc := range []struct {
		why, want string
		change    func() error
	}{
		{"removed", "can no longer be read", func() error { return os.Rename(path, aside) }},
		{"replaced", "Another file is at " + path, func() error { return os.Link(written(t), path) }},
	} {
		if err := tc.change(); err != nil {
			t.Fatal(err)
		}
		if code, body := get(""); code != http.StatusServiceUnavailable || !strings.Contains(body, tc.want) || !strings.Contains(body, "Start tattler ui again") {
			t.Errorf("%s: %d %s", tc.why, code, body)
		}
	}
	if body := <-live; code != http.StatusOK || !strings.Contains(body, "event: stale") {
		t.Errorf("the live page: %d %s", code, body)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
	if code, body := get(""); code != http.StatusOK {
		t.Errorf("back: %d %s", code, body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
