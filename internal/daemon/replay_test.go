package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink/file"
)

// TestReplayFile: what a replay promises is written, also to a file whose sink has just been opened and takes what
// the file ends with for what a crash had sent again. The order comes before a start, or after it.
func TestReplayFile(t *testing.T) {
	r, dir := newRig(t), t.TempDir()
	c := &control.Client{Journal: filepath.Join(dir, "journal.db")}
	path := filepath.Join(dir, "changes.jsonl")
	start := func() (stop func()) {
		to, err := file.New(file.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- Run(ctx, Options{
				Config: r.server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
				Journal: c.Journal, Key: filepath.Join(dir, "key"), Log: slog.New(slog.DiscardHandler),
				Sinks: []deliver.Options{{Name: "file", Sink: to}},
			})
		}()
		await(t, "a daemon that answers", func() bool {
			s, err := c.Status(t.Context())
			return err == nil && s.Settled
		})
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	replay := func(to control.Orders, all int64) {
		t.Helper()
		if done, err := to.Replay(t.Context(), "file", control.Place{}); done.Again != all || err != nil {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	written := func(want int, last int64) {
		t.Helper()
		await(t, "a sink that has all", func() bool {
			s, err := c.Status(t.Context())
			return err == nil && s.Sinks[0].Behind == 0 && s.Journal.Last == last
		})
		if b, err := os.ReadFile(path); err != nil || strings.Count(string(b), "\n") != want {
			t.Fatalf("%d lines, want %d (%v)", strings.Count(string(b), "\n"), want, err)
		}
	}
	stop := start()
	for _, name := range strings.Split("abcdef", "") {
		r.put(name, "1")
	}
	await(t, "the changes", func() bool {
		s, err := c.Status(t.Context())
		return err == nil && s.Journal.Last == 6
	})
	written(6, 6)
	stop()

	away, err := sinkadmin.Open(t.Context(), c.Journal)
	if err != nil {
		t.Fatal(err)
	}
	replay(away, 6)
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	stop = start() // which adds the absence
	written(6+6+1, 7)
	stop()

	stop = start()
	written(14, 8)
	replay(c, 8)
	written(14+8, 8)
	stop()
}
