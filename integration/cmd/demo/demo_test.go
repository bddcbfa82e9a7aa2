package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

func buildTattler(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "tattler")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/tattler")
	cmd.Dir = filepath.Join("..", "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// emptyTemp sets a temporary folder that must be empty at the end of the test.
func emptyTemp(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
}

// output is a buffer to which tattler and the demo may write concurrently.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// TestDemo plays the whole demo and checks the visible output.
func TestDemo(t *testing.T) {
	bin := buildTattler(t)
	emptyTemp(t)
	var out, status output
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	err := run(ctx, options{
		Tattler: bin, Log: []string{"-n", namespace}, Pause: 2 * time.Second, NATS: true, Out: &out,
		Stay: true, Err: io.MultiWriter(&status, trigger{"until Ctrl-C", interrupt}),
	})
	shown := out.String()
	t.Logf("tattler:\n%s\nstatus:\n%s", shown, &status)
	if err != nil || ctx.Err() == nil {
		t.Fatalf("got %v, interrupted: %v", err, ctx.Err())
	}
	for what, line := range map[string]string{
		"the rollout":        "[name=app].image: shop/web:1.4 → shop/web:1.5",
		"the scale":          "spec.replicas: 3 → 5",
		"the value":          "LOG_LEVEL: info → debug",
		"the changed line":   "+ http.timeout=5s",
		"the Secret":         "data.password: changed (hidden",
		"the removed label":  "metadata.labels.tier",
		"the new kind":       "widget/blue",
		"the list's element": "spec.parts[name=wheel].count: 4 → 6",
		"the deletions":      "- cm/web-config",
		"the page":           "http://127.0.0.1:",
	} {
		if !strings.Contains(strings.ReplaceAll(shown, "  ", " "), line) {
			t.Errorf("%s is not displayed: no %q", what, line)
		}
	}
	for _, event := range []string{
		`updated +Deployment +shop/web +[a-z2-7]{26}`, `created +Widget +shop/red +[a-z2-7]{26}`, `deleted +Deployment +shop/web +[a-z2-7]{26}`,
	} {
		if !regexp.MustCompile(`(?m)^` + event + `$`).MatchString(shown) {
			t.Errorf("the subscriber has not seen %s", event)
		}
	}
	if said := regexp.MustCompile(`the stream CHANGES has \d+ events, each of them once`); !said.MatchString(status.String()) {
		t.Errorf("no match of %s", said)
	}
	for _, secret := range []string{"battery-staple", "correct-horse", "YmF0dGVyeS1zdGFwbGU", "Y29ycmVjdC1ob3JzZQ"} {
		if strings.Contains(shown+status.String(), secret) {
			t.Errorf("a value of the Secret is displayed: %s", secret)
		}
	}
}

// script makes a program that replaces tattler.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tattler")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEndsEarly: the demo fails if tattler exits early.
func TestEndsEarly(t *testing.T) {
	d := &demo{dir: t.TempDir(), options: options{
		Tattler: script(t, "echo no such thing >&2; exit 3\n"), Out: io.Discard, Err: io.Discard,
	}}
	if err := d.show(t.Context()); !errors.Is(err, errEarly) || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want %v, and its exit status", err, errEarly)
	}
}

// TestIDsIn: duplicate and torn events are found.
func TestIDsIn(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		err  string
	}{
		{`{"specversion":"1.0","id":"a"}` + "\n" + `{"specversion":"1.0","id":"b"}` + "\n", 2, ""},
		{`{"specversion":"1.0","id":"a"}` + "\n" + `{"specversion":"1.0","id":"a"}` + "\n", 0, "twice"},
		{`{"specversion":"1.0","id":"a"}` + "\n" + `{"specver`, 0, "read events"},
	} {
		path := filepath.Join(t.TempDir(), eventsFile)
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		seen, err := idsIn(path)
		if n := len(seen); n != tc.n || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %d, %v; want %d, %q", tc.text, n, err, tc.n, tc.err)
		}
	}
}

// TestSame: extra, duplicate and missing events on the bus are found.
func TestSame(t *testing.T) {
	for _, tc := range []struct {
		bus, err string
	}{
		{"ab", ""},
		{"ba", ""}, // events of several objects have no common order
		{"aba", "twice"},
		{"a", "only 1"},
		{"abc", "not in " + eventsFile},
	} {
		var events []event.Event
		for _, id := range tc.bus {
			events = append(events, event.Event{ID: string(id)})
		}
		if err := same(events, ids{"a": true, "b": true}); (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", tc.bus, err, tc.err)
		}
	}
}

// trigger cancels when a text is written to it.
type trigger struct {
	text   string
	cancel context.CancelFunc
}

func (w trigger) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.cancel()
	}
	return len(p), nil
}

// TestInterrupt interrupts the demo at its start and in the middle; emptyTemp checks that nothing remains.
func TestInterrupt(t *testing.T) {
	tattler := script(t, "echo msg=recording >&2\ntrap 'exit 0' INT\nwhile :; do sleep 0.1; done\n")
	for name, text := range map[string]string{
		"while the control plane starts": "etcd is ready",
		"while things happen":            steps[1].say,
	} {
		t.Run(name, func(t *testing.T) {
			emptyTemp(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := run(ctx, options{Tattler: tattler, NATS: true, Out: io.Discard, Err: trigger{text, cancel}})
			if ctx.Err() == nil || err == nil {
				t.Errorf("got %v, interrupted: %v", err, ctx.Err())
			}
		})
	}
}
