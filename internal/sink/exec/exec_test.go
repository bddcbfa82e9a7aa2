package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func shell(t *testing.T, script string, o Options) *Sink {
	t.Helper()
	o.Command = []string{"/bin/sh", "-c", script}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s := must(New(o))(t)
	s.waitDelay = time.Minute // stderr is read to its end, however slow the machine is
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func TestExit(t *testing.T) {
	for _, tc := range []struct {
		why, script string
		o           Options
		permanent   bool
		want        string // empty: acknowledged
	}{
		{"taken", "cat > /dev/null", Options{}, false, ""},
		{"taken without being read", "exit 0", Options{}, false, ""},
		{"taken, with a long output", "cat /dev/zero | head -c 1000000; cat /dev/zero | head -c 1000000 >&2", Options{}, false, ""},
		{"not now", "exit 75", Options{}, false, "run sh: exit status 75"},
		{"any other code", "exit 1", Options{}, false, "exit status 1"},
		{"never", "exit 65", Options{}, true, "exit status 65"},
		{"never, by another code", "exit 3", Options{PermanentExitCodes: []int{2, 3}}, true, "exit status 3"},
		{"which takes the place of 65", "exit 65", Options{PermanentExitCodes: []int{2, 3}}, false, "exit status 65"},
		{"or nothing is for ever", "exit 65", Options{PermanentExitCodes: []int{}}, false, "exit status 65"},
		{"a signal", "kill -9 $$", Options{}, false, "signal: killed"},
		{"why", "echo the disk is full >&2; echo ' (as ever)' >&2; exit 1", Options{}, false, "exit status 1: the disk is full (as ever)"},
		{"with credentials", "echo the key is $KEY >&2; exit 1", Options{Env: map[string]string{"KEY": "w0rd"}}, false, "the key is ***"},
		{"no folder", "exit 0", Options{Dir: "/nonexistent"}, false, "(see command and dir)"},
		{"too long", "exec sleep 1000", Options{Timeout: 50 * time.Millisecond}, false, "killed after 50ms"},
	} {
		for _, batch := range []bool{false, true} {
			tc.o.Batch = batch
			n, err := shell(t, tc.script, tc.o).Send(t.Context(), sinktest.Messages(0, 1))
			var permanent *sink.PermanentError
			switch {
			case tc.want == "":
				if n != 1 || err != nil {
					t.Errorf("%s: %d, %v", tc.why, n, err)
				}
			case n != 0 || err == nil || errors.As(err, &permanent) != tc.permanent || !strings.Contains(err.Error(), tc.want):
				t.Errorf("%s: %d, %v; want %q, permanent: %v", tc.why, n, err, tc.want, tc.permanent)
			}
		}
	}
}

// TestTree checks that a program's children are killed with it after the timeout.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	s := shell(t, "sleep 1000 & echo $! > pid.next; mv pid.next pid; wait", Options{Dir: dir, Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Send(ctx, sinktest.Messages(0, 1))
		ended <- err
	}()
	pid := 0
	sinktest.Until(t, func() (err error) {
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	sinktest.Until(t, func() error {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))     // fails if the process is gone
		if len(stat) > 0 && !strings.Contains(string(stat), ") Z ") { // a zombie waits for its new parent
			return fmt.Errorf("process %d lives: %s", pid, stat)
		}
		return nil
	})
}

// TestFinishing checks that a run that ends soon after the context is not killed, and counts; no other run starts.
func TestFinishing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := shell(t, "mkdir begun; sleep 0.1; while [ ! -e canceled ]; do sleep 0.01; done; echo >> ended", Options{Dir: dir, Timeout: time.Minute})
	s.grace = time.Minute // in which it ends, however slow the machine is
	type result struct {
		acked int
		err   error
	}
	ended := make(chan result, 1)
	go func() {
		n, err := s.Send(ctx, sinktest.Messages(0, 2))
		ended <- result{n, err}
	}()
	sinktest.Until(t, func() error {
		_, err := os.Stat(filepath.Join(dir, "begun"))
		return err
	})
	cancel()
	if err := os.Mkdir(filepath.Join(dir, "canceled"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.acked != 1 || !errors.Is(r.err, context.Canceled) {
		t.Errorf("acknowledged %d, %v; want 1", r.acked, r.err)
	}
	if text := must(os.ReadFile(filepath.Join(dir, "ended")))(t); string(text) != "\n" {
		t.Errorf("%d runs", len(text))
	}
}

// TestLeftBehind checks that a child that keeps stderr open does not block the sink.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	s := shell(t, "sleep 1000 & echo $! > pid", Options{Dir: dir})
	s.waitDelay = time.Second
	n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	text := must(os.ReadFile(filepath.Join(dir, "pid")))(t)
	if err := must(os.FindProcess(must(strconv.Atoi(strings.TrimSpace(string(text))))(t)))(t).Kill(); err != nil {
		t.Error(err)
	}
}

// TestClose checks that Close ends a run.
func TestClose(t *testing.T) {
	dir := t.TempDir()
	s := shell(t, "> begun; exec sleep 1000", Options{Dir: dir, Timeout: time.Hour})
	ended := make(chan error, 1)
	go func() {
		_, err := s.Send(context.Background(), sinktest.Messages(0, 1))
		ended <- err
	}()
	sinktest.Until(t, func() error {
		_, err := os.Stat(filepath.Join(dir, "begun"))
		return err
	})
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the sink is closed") {
		t.Errorf("%v", err)
	}
}

// TestEnvironment checks that the program gets the object, the configured variables, and nothing else of ours.
func TestEnvironment(t *testing.T) {
	t.Setenv("DATABASE_PASSWORD", "w0rd")
	t.Setenv("TZ", "UTC")
	m := sinktest.Messages(0, 2)
	run := func(batch bool, ms []sink.Message) []string {
		dir := t.TempDir()
		s := shell(t, "/usr/bin/env > env", Options{Dir: dir, Batch: batch, Env: map[string]string{"TEAM": "shop", "LANG": "C"}})
		if _, err := s.Send(t.Context(), ms); err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(must(os.ReadFile(filepath.Join(dir, "env")))(t)), "\n")
	}
	single := []string{
		"TATTLER_ID=" + m[0].ID, "TATTLER_OP=updated", "TATTLER_SOURCE=/clusters/prod", "TATTLER_SUBJECT=" + m[0].Event.Subject,
		"TATTLER_GROUP=apps", "TATTLER_VERSION=v1", "TATTLER_RESOURCE=deployments", "TATTLER_KIND=Deployment",
		"TATTLER_NAMESPACE=shop", "TATTLER_NAME=web-0",
	}
	for _, tc := range []struct {
		why          string
		got          []string
		there, never []string
	}{
		{"one change", run(false, m[:1]), append(single, "TATTLER_COUNT=1", "TEAM=shop", "LANG=C", "TZ=UTC"), []string{"DATABASE_PASSWORD=w0rd"}},
		{"a batch", run(true, m), []string{"TATTLER_COUNT=2", "TEAM=shop"}, append(single, "DATABASE_PASSWORD=w0rd")},
	} {
		for _, v := range tc.there {
			if !slices.Contains(tc.got, v) {
				t.Errorf("%s: %s is missing in %q", tc.why, v, tc.got)
			}
		}
		for _, v := range tc.never {
			if slices.Contains(tc.got, v) {
				t.Errorf("%s: %s is there", tc.why, v)
			}
		}
	}
}

// TestNoShell checks that arguments are passed unchanged.
func TestNoShell(t *testing.T) {
	dir := t.TempDir()
	s := must(New(Options{Command: []string{"/bin/sh", "-c", `printf %s "$1" > got`, "sh", "$(date); *"}, Dir: dir}))(t)
	if _, err := s.Send(t.Context(), sinktest.Messages(0, 1)); err != nil {
		t.Fatal(err)
	}
	if got := string(must(os.ReadFile(filepath.Join(dir, "got")))(t)); got != "$(date); *" {
		t.Errorf("%q", got)
	}
}

// TestPatience checks that the pump gives a run its configured timeout.
func TestPatience(t *testing.T) {
	const long = 10 * time.Minute
	if got := sink.SlowSink(shell(t, "exit 0", Options{Timeout: long})).MinSendTimeout(); got <= long {
		t.Errorf("%s, want more than a run's %s", got, long)
	}
}

// TestRelative checks that a relative path of a program is relative to dir, from the start.
func TestRelative(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "on-change"), []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	s := must(New(Options{Command: []string{"./on-change"}, Dir: dir}))(t)
	defer s.Close(context.Background())
	if n, err := s.Send(t.Context(), sinktest.Messages(0, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
