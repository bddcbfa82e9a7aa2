package sinkadmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

var epoch = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// recorded creates a journal in which a ConfigMap is created each minute from 10:00 on.
func recorded(t *testing.T, changes int) (path string, ids []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	kind := journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	for n := range changes {
		at, name := epoch.Add(time.Duration(n)*time.Minute), fmt.Sprintf("c%d", n+1)
		after, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
		row := journal.Row{Meta: journal.Meta{
			Op: event.Created, Kind: kind, Namespace: "shop", Name: name, UID: name, ResourceVersion: fmt.Sprint(n + 1), Time: at, At: at,
		}, After: after}
		if _, err := j.Append(t.Context(), []journal.Batch{{
			Stream: journal.Stream{GroupResource: "configmaps"}, Head: journal.Head{Version: fmt.Sprint(n + 1), Live: true, At: at}, Rows: []journal.Row{row},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Rows(t.Context(), journal.Query{OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if err := errors.Join(r.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	return path, ids
}

// opened returns an Admin without pumps, with a sink "hook" at a cursor and a paused one without a cursor,
// "log".
func opened(t *testing.T, changes int, cursor int64) (d *Admin, ids []string) {
	t.Helper()
	path, ids := recorded(t, changes)
	d, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(d.Journal.SetCursor(t.Context(), "hook", cursor), d.Journal.Pause(t.Context(), "log", true)); err != nil {
		t.Fatal(err)
	}
	return d, ids
}

func TestOpen(t *testing.T) {
	none := filepath.Join(t.TempDir(), "journal.db")
	if _, err := Open(t.Context(), none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no journal: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), empty); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that a daemon was about to make: %v", err)
	}
	begun := filepath.Join(t.TempDir(), "journal.db")
	c, err := sqlite3.Open(begun)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec("PRAGMA journal_mode = WAL"), c.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(begun)
	if err != nil || len(before) == 0 {
		t.Fatalf("%d bytes, %v", len(before), err)
	}
	var format *journal.FormatError
	if _, err := Open(t.Context(), begun); !errors.As(err, &format) {
		t.Errorf("one that a daemon was in the midst of making: %v", err)
	}
	for file, want := range map[string]string{empty: "", begun: string(before)} {
		if now, err := os.ReadFile(file); string(now) != want || err != nil {
			t.Errorf("%s was written, %v", file, err)
		}
	}
	path, _ := recorded(t, 1)
	j, err := journal.Open(t.Context(), path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var locked *journal.LockedError
	if _, err := Open(t.Context(), path); !errors.As(err, &locked) {
		t.Errorf("a daemon has it: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReplay(t *testing.T) {
	for _, tc := range []struct {
		why    string
		sink   string
		from   control.Place
		want   control.Replayed
		cursor int64
	}{
		{"all", "hook", control.Place{}, control.Replayed{Again: 4, Behind: 6}, 0},
		{"since a change, that included", "hook", control.Place{Since: epoch.Add(2 * time.Minute)}, control.Replayed{Again: 2, Behind: 4}, 2},
		{"since between two", "hook", control.Place{Since: epoch.Add(150 * time.Second)}, control.Replayed{Again: 1, Behind: 3}, 3},
		{"behind a number", "hook", control.Place{After: 3}, control.Replayed{Again: 1, Behind: 3}, 3},
		{"changes not received yet are not skipped", "hook", control.Place{Since: epoch.Add(5 * time.Minute)}, control.Replayed{Behind: 2}, 4},
		{"nor by a number", "hook", control.Place{After: 100}, control.Replayed{Behind: 2}, 4},
		{"while it is paused, and never got anything", "log", control.Place{After: 5}, control.Replayed{Again: 1, Behind: 1, Paused: true}, 5},
	} {
		d, _ := opened(t, 6, 4)
		got, err := d.Replay(t.Context(), tc.sink, tc.from)
		if got != tc.want || err != nil {
			t.Errorf("%s: %+v, %v", tc.why, got, err)
		}
		if seq, _, err := d.Journal.Cursor(t.Context(), tc.sink); seq != tc.cursor || err != nil {
			t.Errorf("%s: the cursor is at %d, %v", tc.why, seq, err)
		}
	}
	d, _ := opened(t, 6, 6)
	var refusal *control.Refusal
	if _, err := d.Replay(t.Context(), "hook", control.Place{After: -1}); !errors.As(err, &refusal) {
		t.Errorf("no number: %v", err)
	}
	if _, err := d.Journal.Retain(t.Context(), epoch.Add(time.Hour), journal.Retention{Age: time.Hour - 150*time.Second}, 6); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Replay(t.Context(), "hook", control.Place{}); got != (control.Replayed{Again: 3, Behind: 3}) || err != nil {
		t.Errorf("changes no longer kept are not promised: %+v, %v", got, err)
	}
	if _, err := d.Journal.Retain(t.Context(), epoch.Add(time.Hour), journal.Retention{Age: time.Second}, 6); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Replay(t.Context(), "hook", control.Place{}); got != (control.Replayed{Behind: 3}) || err != nil {
		t.Errorf("nothing is kept: %+v, %v", got, err)
	}
}

func TestPauseAndRemove(t *testing.T) {
	ctx := t.Context()
	d, _ := opened(t, 1, 0)
	if err := errors.Join(d.Pause(ctx, "hook", true), d.Pause(ctx, "log", false)); err != nil {
		t.Error(err)
	}
	got, err := Sinks(ctx, d.Reader, epoch.Add(90*time.Second))
	want := []control.Sink{{Name: "hook", State: "paused", Behind: 1, LagSeconds: 90}, {Name: "log", State: "stopped", Cursor: 1}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	var refused *control.Refusal
	if err := d.Remove(ctx, "log"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "start tattler run") {
		t.Errorf("it may be configured: %v", err)
	}
	d.Pumps = map[string]*deliver.Pump{}
	if err := d.Remove(ctx, "log"); err != nil {
		t.Error(err)
	}
	for _, tc := range []struct{ why, sink, want string }{
		{"one that was removed", "log", `there is no sink "log": there are hook`},
		{"a typo", "hok", `there is no sink "hok"; did you mean "hook"?`},
	} {
		var refusal *control.Refusal
		for what, err := range map[string]error{
			"pause": d.Pause(ctx, tc.sink, true), "remove": d.Remove(ctx, tc.sink),
			"replay": second(d.Replay(ctx, tc.sink, control.Place{})), "drop": second(d.DropDead(ctx, tc.sink, []string{"x"})),
			"replay dead": second(d.ReplayDead(ctx, tc.sink, []string{"x"})), "skip": second(d.Skip(ctx, tc.sink, "")),
		} {
			if !errors.As(err, &refusal) || err.Error() != tc.want {
				t.Errorf("%s, %s: %v", what, tc.why, err)
			}
		}
	}
	if err := d.Remove(ctx, "hook"); err != nil {
		t.Error(err)
	}
	if err := d.Pause(ctx, "hook", true); err == nil || !strings.Contains(err.Error(), "the journal has no sinks") {
		t.Errorf("none is left: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestConfigured: with pumps, a configured sink exists before the journal knows it, and is not removed.
func TestConfigured(t *testing.T) {
	d, _ := opened(t, 1, 0)
	p, err := deliver.New(deliver.Options{Name: "new", Sink: nothing{}, Store: &sinktest.Store{}})
	if err != nil {
		t.Fatal(err)
	}
	d.Pumps = map[string]*deliver.Pump{"new": p}
	if err := d.Pause(t.Context(), "new", true); err != nil || p.Status().State != deliver.Paused {
		t.Errorf("%v, %+v", err, p.Status())
	}
	if err := d.Pause(t.Context(), "new", false); err != nil || p.Status().State != deliver.Running {
		t.Errorf("%v, %+v", err, p.Status())
	}
	if err := d.Remove(t.Context(), "new"); err == nil || !strings.Contains(err.Error(), "is configured") {
		t.Error(err)
	}
}

// TestSkip: only the named change is skipped, and only if it blocks the sink.
func TestSkip(t *testing.T) {
	d, _ := opened(t, 1, 0)
	var refusal *control.Refusal
	refuses := func(why, id, want string) {
		t.Helper()
		if _, err := d.Skip(t.Context(), "hook", id); !errors.As(err, &refusal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", why, err, want)
		}
	}
	d.Pumps = map[string]*deliver.Pump{}
	refuses("it is configured no more", "", "sink hook is not configured")
	store := &sinktest.Store{}
	store.Append(sinktest.Item(0))
	o := deliver.Options{Name: "hook", Sink: broken{}, Store: store, From: deliver.Beginning, Retry: deliver.Retry{Min: time.Hour, Max: time.Hour}}
	p, err := deliver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	d.Pumps["hook"] = p
	refuses("it works", "", "nothing blocks sink hook: it is running")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for p.Status().Stuck == nil {
		runtime.Gosched()
	}
	id := sinktest.Event(0).ID
	refuses("another one", "0", "change "+id+" blocks sink hook, not 0")
	want := control.Skipped{ID: id, Subject: sinktest.Event(0).Subject, Error: "403"}
	if got, err := d.Skip(t.Context(), "hook", id[:5]); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSkipWithoutDaemon: if no daemon runs, only the next change can be skipped, and only by its id. Nothing
// else is passed over.
func TestSkipWithoutDaemon(t *testing.T) {
	d, ids := opened(t, 4, 1)
	subject := "/api/v1/namespaces/shop/configmaps/c2"
	var refusal *control.Refusal
	for _, tc := range []struct{ why, sink, id, want string }{
		{"it is not named", "hook", "", "its next change is " + ids[1] + " (" + subject + "): tattler sinks skip hook " + ids[1]},
		{"a later one", "hook", ids[2], "the next change of sink hook is " + ids[1] + " (" + subject + "), not " + ids[2] + ": start tattler run"},
		{"one that it has", "hook", ids[0], "not " + ids[0]},
		{"a sink that has not started", "log", ids[0], "it has not started yet"},
	} {
		if _, err := d.Skip(t.Context(), tc.sink, tc.id); !errors.As(err, &refusal) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
	if cursor, _, err := d.Journal.Cursor(t.Context(), "hook"); cursor != 1 || err != nil {
		t.Errorf("after refusals the cursor is %d, %v", cursor, err)
	}
	want := control.Skipped{ID: ids[1], Subject: subject}
	if got, err := d.Skip(t.Context(), "hook", ids[1][:8]); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	cursor, _, err := d.Journal.Cursor(t.Context(), "hook")
	letters, lerr := Letters(t.Context(), d.Reader, "hook")
	if cursor != 2 || len(letters) != 1 || letters[0].ID != ids[1] || errors.Join(err, lerr) != nil {
		t.Errorf("the cursor is %d, the dead letters are %+v, %v, %v", cursor, letters, err, lerr)
	}
	if err := d.Journal.SetCursor(t.Context(), "hook", 4); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Skip(t.Context(), "hook", ids[3]); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "it has everything") {
		t.Error(err)
	}
}

// TestReplayOnItsWay: changes being sent count as received. In a bubble, a deadline passes only while everything waits.
func TestReplayOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := opened(t, 1, 0)
		to := slow{arrived: make(chan struct{}), take: make(chan struct{})}
		store := &sinktest.Store{}
		store.Append(sinktest.Item(0))
		p, err := deliver.New(deliver.Options{Name: "hook", Sink: to, Store: store, From: deliver.Beginning})
		if err != nil {
			t.Fatal(err)
		}
		d.Pumps = map[string]*deliver.Pump{"hook": p}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		<-to.arrived
		soon, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		if done, err := d.Replay(soon, "hook", control.Place{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("before it is there: %+v, %v", done, err)
		}
		to.take <- struct{}{}
		if done, err := d.Replay(t.Context(), "hook", control.Place{}); done != (control.Replayed{Again: 1, Behind: 1}) || err != nil {
			t.Fatalf("once it is: %+v, %v", done, err)
		}
		<-to.arrived // again
		cancel()
		to.take <- struct{}{}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestDead(t *testing.T) {
	ctx := t.Context()
	d, ids := opened(t, 3, 3)
	for i, id := range ids {
		if _, err := d.Journal.SetAside(ctx, journal.DeadLetter{Sink: "hook", Seq: int64(i + 1), ID: id, Reason: "400", Attempts: 3, At: epoch}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Journal.Retain(ctx, epoch.Add(time.Hour), journal.Retention{Age: time.Hour - 30*time.Second}, 3); err != nil {
		t.Fatal(err)
	}
	got, err := Letters(ctx, d.Reader, "hook")
	want := []Letter{
		{ID: ids[0], Seq: 1, Reason: "400", Attempts: 3, Since: epoch},
		{ID: ids[1], Seq: 2, Kept: true, Op: "created", Resource: "configmaps", Namespace: "shop", Name: "c2", Time: epoch.Add(time.Minute), Reason: "400", Attempts: 3, Since: epoch},
		{ID: ids[2], Seq: 3, Kept: true, Op: "created", Resource: "configmaps", Namespace: "shop", Name: "c3", Time: epoch.Add(2 * time.Minute), Reason: "400", Attempts: 3, Since: epoch},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, tc := range []struct {
		why  string
		ids  []string
		want string
	}{
		{"none must not be all", nil, "name at least one dead letter"},
		{"an unknown one", []string{ids[0], "x"}, `no dead letter "x"`},
	} {
		if n, err := d.DropDead(ctx, "hook", tc.ids); n != 0 || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %d, %v", tc.why, n, err)
		}
	}
	if _, err := d.ReplayDead(ctx, "hook", ids[1:]); err == nil || !strings.Contains(err.Error(), "start tattler run") {
		t.Errorf("no daemon can send: %v", err)
	}
	d.Pumps = map[string]*deliver.Pump{}
	if _, err := d.ReplayDead(ctx, "hook", ids[1:]); err == nil || !strings.Contains(err.Error(), "not configured") {
		t.Errorf("unknown destination: %v", err)
	}
	if n, err := d.DropDead(ctx, "hook", []string{ids[0], ids[2], ids[0]}); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if left, err := Letters(ctx, d.Reader, "hook"); len(left) != 1 || left[0].ID != ids[1] || err != nil {
		t.Errorf("%+v, %v", left, err)
	}
}
