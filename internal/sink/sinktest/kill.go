package sinktest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/sink"
)

// The environment of the process to kill: the target to open, the cursor's file, and the number of the commit before
// which it dies.
const (
	envTarget = "TATTLER_SINKTEST_TARGET"
	envCursor = "TATTLER_SINKTEST_CURSOR"
	envKill   = "TATTLER_SINKTEST_KILL"
)

const killEvents = 200

// Main is the TestMain of a sink's tests. In the process that Run starts in order to kill it, Main opens the sink and
// delivers. Otherwise it runs the tests and checks for leaked goroutines.
func Main(m *testing.M, open func(target string) (sink.Sink, error)) {
	target := os.Getenv(envTarget)
	if target == "" {
		leaktest.Main(m)
		return
	}
	if err := victim(target, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// victim delivers until it is killed, or until everything is delivered.
func victim(target string, open func(string) (sink.Sink, error)) error {
	s, err := open(target)
	if err != nil {
		return err
	}
	kill, err := strconv.Atoi(os.Getenv(envKill))
	if err != nil {
		return err
	}
	store := &Store{Path: os.Getenv(envCursor)}
	store.Fail = func(method string) error {
		if method != "SetCursor" {
			return nil
		}
		if kill--; kill > 0 {
			return nil
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := self.Kill(); err != nil {
			return err
		}
		select {} // wait for the signal
	}
	for n := range killEvents {
		item := Item(n)
		item.Size = 100 << 10 // about ten to a batch
		store.Append(item)
	}
	p, err := deliver.New(deliver.Options{Name: "victim", Sink: s, Store: store, From: deliver.Beginning, Drain: time.Minute, Retry: quick})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := p.Prepare(ctx); err != nil {
		cancel()
		return err
	}
	cancel() // so that the pump drains and ends
	return p.Run(ctx)
}

// killed checks that a kill -9 between acknowledgement and commit makes the pump send the same events again, with the
// same ids, and loses none.
func killed(t *testing.T, r *rig) {
	r.close(t) // the other process uses the receiver now
	cursor := filepath.Join(t.TempDir(), "cursor")
	kills := 0
	for run := 0; ; run++ {
		if run == 40 {
			t.Fatal("the events do not run out")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envTarget+"="+r.receiver.Target(), envCursor+"="+cursor,
			fmt.Sprintf("%s=%d", envKill, 2+run%4), "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if cmd.ProcessState.Exited() {
			t.Fatalf("the process failed instead of being killed: %v\n%s", err, out)
		}
		kills++
	}
	if kills < 3 {
		t.Errorf("only %d kills", kills)
	}
	want := ids(Messages(0, killEvents))
	r.has(t, !r.Once, want)
	if got := r.receiver.Received(t); !r.Once && len(got) <= len(want) {
		t.Errorf("%d messages for %d events and %d kills before a commit: nothing was sent again", len(got), len(want), kills)
	}
	last := Store{Path: cursor}
	if seq, _, err := last.Cursor(t.Context(), ""); err != nil || seq != killEvents {
		t.Errorf("the cursor ends at %d, %v; want %d", seq, err, killEvents)
	}
}
