package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink"
)

// picky is a sink that refuses some names permanently. It is safe for concurrent use.
type picky struct {
	mu      sync.Mutex
	sent    sent
	refuses string
	blocks  string // a name on which it fails with a temporary error
}

func (p *picky) String() string              { return "picky" }
func (p *picky) Close(context.Context) error { return nil }

func (p *picky) Send(ctx context.Context, ms []sink.Message) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, m := range ms {
		if p.refuses != "" && m.Event.Data.Resource.Name == p.refuses {
			return i, &sink.PermanentError{Err: errors.New("400 Bad Request")}
		}
		if p.blocks != "" && m.Event.Data.Resource.Name == p.blocks {
			return i, errors.New("403 Forbidden")
		}
		if _, err := p.sent.Send(ctx, ms[i:i+1]); err != nil {
			return i, err
		}
	}
	return len(ms), nil
}

func (p *picky) refuse(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = name
}

func (p *picky) block(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocks = name
}

func (p *picky) lines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.sent.lines, ", ")
}

// await waits for a condition: this test runs in real time, because a socket is outside of a bubble.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestOrders runs a daemon and sends requests to its socket, over two runs.
func TestOrders(t *testing.T) {
	r, dir, got := newRig(t), t.TempDir(), &picky{}
	c := &control.Client{Journal: filepath.Join(dir, "journal.db")}
	r.put("old", "1")
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- Run(ctx, Options{
				Config: r.server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
				Journal: c.Journal, Key: filepath.Join(dir, "key"), Log: slog.New(slog.DiscardHandler),
				Sinks: []deliver.Options{{Name: "hook", Sink: got, Retry: deliver.Retry{Attempts: 1}}},
			})
		}()
		await(t, "a daemon that answers", func() bool {
			s, err := c.Status(t.Context())
			return err == nil && s.Settled
		})
		var once sync.Once
		stop = func() {
			once.Do(func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
		t.Cleanup(stop)
		return stop
	}
	stop := start()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hook := func() (h control.Sink) {
		t.Helper()
		await(t, "the status", func() bool { // a busy daemon may answer too late
			s, err := c.Status(ctx)
			if err == nil {
				h = s.Sinks[0]
			}
			return err == nil
		})
		return h
	}

	await(t, "the existing objects", func() bool { return hook().Behind == 0 })
	must(c.Pause(ctx, "hook", true))
	r.put("a", "1")
	await(t, "a change that waits", func() bool { return hook().Behind == 1 })
	if s := hook(); s.State != "paused" || got.lines() != "" {
		t.Errorf("paused: %+v, %s", s, got.lines())
	}
	stop()
	if _, err := os.Lstat(control.SocketPath(c.Journal)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	stop = start()
	if s := hook(); s.State != "paused" || s.Behind == 0 {
		t.Errorf("paused before the restart: %+v", s)
	}
	must(c.Pause(ctx, "hook", false))
	await(t, "the waiting change", func() bool { return got.lines() == "created a" })

	got.refuse("b")
	r.put("b", "1")
	r.put("c", "1")
	await(t, "a dead letter", func() bool { s := hook(); return s.Dead == 1 && s.Behind == 0 })
	must(c.Pause(ctx, "hook", true))
	replayed, err := c.Replay(ctx, "hook", control.Place{After: 1}) // the three, and the absence between the two runs
	if want := (control.Replayed{Again: 4, Behind: 4, Paused: true}); replayed != want || err != nil {
		t.Errorf("replay while paused: %+v, %v", replayed, err)
	}
	if got.lines() != "created a, created c" {
		t.Errorf("it is paused, and gets %s", got.lines())
	}
	dead := letters(t, c.Journal)
	if len(dead) != 1 || dead[0].Name != "b" || dead[0].Op != "created" || dead[0].Reason != "400 Bad Request" || dead[0].Attempts != 1 {
		t.Fatalf("%+v", dead)
	}
	if done, err := c.ReplayDead(ctx, "hook", []string{dead[0].ID}); done != (control.Retried{Refused: 1}) || err != nil {
		t.Errorf("refused again: %+v, %v", done, err)
	}
	got.refuse("")
	if done, err := c.ReplayDead(ctx, "hook", []string{dead[0].ID}); done != (control.Retried{Taken: 1}) || err != nil {
		t.Errorf("taken: %+v, %v", done, err)
	}
	must(c.Pause(ctx, "hook", false))
	const all = "created a, created c, created b, created a, created b, created c"
	await(t, "all once more", func() bool { return got.lines() == all })

	got.block("d")
	r.put("d", "1")
	r.put("e", "1")
	await(t, "one that holds the sink up", func() bool { s := hook(); return s.Stuck != nil && s.Behind == 2 })
	stuck := hook().Stuck
	skipped, err := c.Skip(ctx, "hook", stuck.ID[:6])
	if want := (control.Skipped{ID: stuck.ID, Subject: stuck.Subject, Error: "403 Forbidden"}); skipped != want || err != nil || !strings.HasSuffix(skipped.Subject, "/configmaps/d") {
		t.Errorf("skip: %+v, %v", skipped, err)
	}
	await(t, "the next", func() bool { return got.lines() == all+", created e" })
	stop()
	stop = start()
	await(t, "a daemon that has nothing to do", func() bool { s := hook(); return s.Behind == 0 && s.Stuck == nil })
	if again := letters(t, c.Journal); len(again) != 1 || again[0].Name != "d" || again[0].Reason != "skipped: 403 Forbidden" || got.lines() != all+", created e" {
		t.Errorf("after a restart: %+v, %s", again, got.lines())
	}

	var refusal *control.Refusal
	for why, err := range map[string]error{
		"a slip":                  c.Pause(ctx, "hok", true),
		"one that is configured":  c.Remove(ctx, "hook"),
		"a letter that was taken": second(c.DropDead(ctx, "hook", []string{dead[0].ID})),
	} {
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v", why, err)
		}
	}
	stop()
}

func second[T any](_ T, err error) error { return err }

// letters returns the dead letters of hook.
func letters(t *testing.T, path string) []sinkadmin.Letter {
	t.Helper()
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := sinkadmin.Letters(t.Context(), r, "hook")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPausedInFile: the configuration's value applies once; after that, the verbs' changes persist. A sink that
// is no longer configured is logged.
func TestPausedInFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir, got := newRig(t), t.TempDir(), &sent{}
		o := Options{Sinks: []deliver.Options{{Name: "hook", Sink: got, Paused: true}}}
		d := r.daemon(dir, o)
		r.put("a", "1")
		if s := d.status(); s.Sinks[0].State != "paused" || s.Sinks[0].Behind != 1 || len(got.lines) > 0 {
			t.Errorf("new: %+v, %v", s.Sinks[0], got.lines)
		}
		d.stop()

		o.Sinks[0].Paused = false
		d = r.daemon(dir, o)
		if s := d.status(); s.Sinks[0].State != "paused" {
			t.Errorf("it is remembered: %+v", s.Sinks[0])
		}
		d.stop()

		away, err := sinkadmin.Open(t.Context(), filepath.Join(dir, "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(away.Pause(t.Context(), "hook", false), away.Close()); err != nil {
			t.Fatal(err)
		}
		o.Sinks[0].Paused = true
		d = r.daemon(dir, o)
		d.pass(time.Second)
		if s := d.status(); s.Sinks[0].State != "running" || cmp.Diff([]string{"created a"}, got.lines) != "" {
			t.Errorf("resumed: %+v, %v", s.Sinks[0], got.lines)
		}
		if !strings.Contains(d.log.String(), "is for new sinks") {
			t.Errorf("it is not logged that the file does not apply: %s", d.log.String())
		}
		d.stop()

		d = r.daemon(dir, Options{})
		if s := d.status(); len(s.Sinks) != 0 || cmp.Diff([]string{"hook"}, s.Left) != "" || !strings.Contains(d.log.String(), "no longer configured") {
			t.Errorf("it is left: %+v; %s", s, d.log.String())
		}
		d.stop()
	})
}
