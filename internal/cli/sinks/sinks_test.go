package sinks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/usage"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// recorded makes a journal of six changes, one a minute from 10:00 on. Sink "hook" has received four of them and
// refused two; sink "log" is paused. The ids are those of the dead letters.
func recorded(t *testing.T) (path string, ids []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	kind := journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	var rows []journal.Row
	for n := range 6 {
		at, name := start.Add(time.Duration(n)*time.Minute), fmt.Sprintf("c%d", n+1)
		rows = append(rows, journal.Row{Meta: journal.Meta{
			Op: event.Created, Kind: kind, Namespace: "shop", Name: name, UID: name, ResourceVersion: fmt.Sprint(n + 1), Time: at, At: at,
		}, After: []byte(`{"metadata":{}}`)})
	}
	_, err = j.Append(t.Context(), []journal.Batch{{
		Stream: journal.Stream{GroupResource: "configmaps"}, Head: journal.Head{Version: "6", Live: true, At: start}, Rows: rows,
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Rows(t.Context(), journal.Query{OldestFirst: true, Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	err = errors.Join(r.Close(), j.SetCursor(t.Context(), "hook", 4), j.Pause(t.Context(), "log", true))
	for i := range 2 {
		d := journal.DeadLetter{Sink: "hook", Seq: int64(i + 1), ID: ids[i], Reason: "400 Bad Request", Attempts: 3, At: start}
		_, asideErr := j.SetAside(t.Context(), d)
		err = errors.Join(err, asideErr)
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return path, ids
}

// tattler runs a command line of the verb.
func tattler(t *testing.T, path string, args ...string) (out, stderr string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := NewCommand(&terminal.IO{Out: &o, Err: &e, Width: func() int { return 0 }})
	cmd.SetArgs(append(args, "--journal", path))
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// TestWithoutDaemon executes orders on the journal itself.
func TestWithoutDaemon(t *testing.T) {
	path, ids := recorded(t)
	for _, tc := range []struct {
		why, args string
		want      string // of stdout, or of the error
	}{
		{"the table", "", "NAME  STATE    BEHIND"},
		{"a sink that has not got all", "", "hook  stopped       2"},
		{"its dead letters", "", "2 dead letters: tattler sinks dead hook"},
		{"a paused one", "", "log   paused"},
		{"pause", "pause hook", "hook is paused: new changes wait in the journal\n"},
		{"what is paused stays so", "", "hook  paused       2"},
		{"resume", "resume hook log", "hook is resumed once tattler run starts\nlog is resumed once tattler run starts\n"},
		{"a slip", "pause hok", `there is no sink "hok"; did you mean "hook"?`},
		{"replay", "replay hook --since 2026-03-01T10:02:00Z", "hook receives up to 2 changes again, and up to 4 in all once tattler run starts; quiet changes, those that its filter rejects and, without snapshots: true, snapshots are not sent\n"},
		{"what it has not got yet", "replay hook --since 2026-03-01T10:05:00Z", "nothing to deliver again: hook has received nothing since then; up to 4 changes to deliver\n"},
		{"all", "replay hook --all", "hook receives up to 2 changes again, and up to 6 in all"},
		{"dead letters", "dead hook", ids[0] + "  created configmaps c1 in shop\n    after 3 attempts: 400 Bad Request"},
		{"one of them", "dead hook " + ids[1][:8], ids[1] + "  created configmaps c2 in shop\n"},
		{"none", "dead log", "log has no dead letters\n"},
		{"of no sink", "dead hok", `did you mean "hook"?`},
		{"no such letter", "dead hook zzz", `sink hook has no dead letter "zzz"`},
		{"nobody can send", "dead hook --replay --all", "no daemon records into " + path + ": start tattler run"},
		{"skip what is not named", "skip log", "nothing blocks sink log: it has not started yet"},
		{"removed", "dead hook --drop " + ids[0], "1 dead letter removed for good\n"},
		{"the rest", "dead hook --drop --all", "1 dead letter removed for good\n"},
		{"skip the next change by its id", "skip hook " + ids[0][:8], "change " + ids[0] + " (/api/v1/namespaces/shop/configmaps/c1) is now a dead letter; hook continues with the next one once tattler run starts\n"},
		{"it is a dead letter", "dead hook --drop " + ids[0], "1 dead letter removed for good\n"},
		{"none is left", "dead hook --drop --all", "hook has no dead letters\n"},
		{"is it no longer configured?", "remove hook", "only a running daemon knows which sinks are configured: start tattler run, then remove hook"},
		{"it keeps its place", "", "hook  stopped       5"},
	} {
		out, _, err := tattler(t, path, strings.Fields(tc.args)...)
		if err != nil {
			out += err.Error()
		}
		if !strings.Contains(out, tc.want) {
			t.Errorf("%s: tattler sinks %s says\n%s\nwant %q", tc.why, tc.args, out, tc.want)
		}
	}
	if out, said, err := tattler(t, path); err != nil || !strings.HasPrefix(said, "No daemon records into "+path) {
		t.Errorf("%s, %s, %v", out, said, err)
	}
}

func TestJSON(t *testing.T) {
	path, ids := recorded(t)
	out, _, err := tattler(t, path, "-o", "json")
	var all []control.Sink
	if jerr := json.Unmarshal([]byte(out), &all); err != nil || jerr != nil || len(all) != 2 || all[0].Name != "hook" || all[0].Behind != 2 || all[0].Dead != 2 {
		t.Errorf("%v, %v, %s", err, jerr, out)
	}
	out, _, err = tattler(t, path, "dead", "hook", "-o", "json")
	var dead []struct{ ID, Name string }
	if jerr := json.Unmarshal([]byte(out), &dead); err != nil || jerr != nil || len(dead) != 2 || dead[0].ID != ids[0] || dead[0].Name != "c1" {
		t.Errorf("%v, %v, %s", err, jerr, out)
	}
}

func TestUsage(t *testing.T) {
	path, _ := recorded(t)
	for _, tc := range []struct{ why, args, want string }{
		{"no such command", "stop hook", `unknown command "stop"`},
		{"a slip", "resum hook", `did you mean "resume"?`},
		{"from where?", "replay hook", "--since TIME or --all"},
		{"one of them", "replay hook --since 5m --all", "--since and --all exclude each other"},
		{"no time", "replay hook --since soon", `"soon" is not a time`},
		{"a time to come", "replay hook --since 2999-01-01", "later than now"},
		{"which?", "dead hook --drop", "say which dead letters"},
		{"send or remove", "dead hook --drop --replay --all", "exclude each other"},
		{"all, and some", "dead hook --drop --all x", "name some ids, or use --all"},
		{"no such format", "dead hook -o yaml", "use text or json"},
		{"no such format", "-o yaml", "use text or json"},
	} {
		_, _, err := tattler(t, path, strings.Fields(tc.args)...)
		var wrong *usage.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
	for _, args := range []string{"pause", "resume", "remove", "replay --all", "replay a b --all", "skip", "skip a b c", "dead"} {
		if _, _, err := tattler(t, path, strings.Fields(args)...); err == nil {
			t.Errorf("tattler sinks %s", args)
		}
	}
}

// TestNoSinks: a journal without sinks is valid.
func TestNoSinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if out, _, err := tattler(t, path); err != nil || !strings.Contains(out, "There are no sinks") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestNoJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for _, args := range []string{"", "pause hook", "dead hook", "dead hook --drop --all"} {
		if _, _, err := tattler(t, path, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), "there is no journal at "+path) {
			t.Errorf("tattler sinks %s: %v", args, err)
		}
	}
}

// TestLocked: a daemon holds the journal, but its socket does not answer.
func TestLocked(t *testing.T) {
	path, _ := recorded(t)
	j, err := journal.Open(t.Context(), path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, _, err = tattler(t, path, "pause", "hook")
	var locked *journal.LockedError
	if !errors.As(err, &locked) || !strings.Contains(err.Error(), "does not answer at "+path+".sock") {
		t.Error(err)
	}
}

// daemon is a fake daemon.
type daemon struct {
	seen   []string
	status control.Status
	left   int // dead letters that are refused
}

func (d *daemon) note(format string, args ...any) {
	d.seen = append(d.seen, fmt.Sprintf(format, args...))
}

func (d *daemon) Pause(_ context.Context, sink string, paused bool) error {
	d.note("pause %s %v", sink, paused)
	return nil
}

func (d *daemon) Replay(_ context.Context, sink string, from control.Place) (control.Replayed, error) {
	d.note("replay %s %d", sink, from.After)
	return control.Replayed{Again: 2, Behind: 3, Paused: true}, nil
}

func (d *daemon) ReplayDead(_ context.Context, sink string, ids []string) (control.Retried, error) {
	d.note("replay dead %s %d", sink, len(ids))
	return control.Retried{Taken: len(ids) - d.left, Refused: d.left}, nil
}

func (d *daemon) Skip(_ context.Context, sink, id string) (control.Skipped, error) {
	d.note("skip %s %s", sink, id)
	return control.Skipped{ID: "abcdef", Subject: "/api/v1/nodes/n\x1b[31m", Error: "403 Forbidden"}, nil
}

func (d *daemon) DropDead(_ context.Context, sink string, ids []string) (int, error) {
	d.note("drop %s %d", sink, len(ids))
	return len(ids), nil
}

func (d *daemon) Remove(_ context.Context, sink string) error {
	return control.Refuse("sink %s is configured", sink)
}

func (d *daemon) serve(t *testing.T, path string) {
	t.Helper()
	l, err := control.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	status := func(context.Context) (control.Status, error) { return d.status, nil }
	go func(l net.Listener) { ended <- control.Serve(ctx, l, control.Options{Status: status, Orders: d}) }(l)
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestWithDaemon sends the orders to a daemon.
func TestWithDaemon(t *testing.T) {
	path, _ := recorded(t)
	d := &daemon{status: control.Status{Sinks: []control.Sink{{Name: "hook", To: "webhook", State: "running", Delivered: 17}}, Left: []string{"log"}}}
	d.serve(t, path)
	for _, tc := range []struct{ why, args, want, seen string }{
		{"the table, with what is left, of which only the journal knows", "", "hook  running       0   0s         17     0     0\nlog   paused ", ""},
		{"pause", "pause hook x", "hook is paused: new changes wait in the journal\nx is paused", "pause hook true; pause x true"},
		{"resume", "resume hook", "hook is resumed\n", "pause hook false"},
		{"replay while it is paused", "replay hook --all", "hook receives up to 2 changes again, and up to 3 in all; quiet changes, those that its filter rejects and, without snapshots: true, snapshots are not sent\nit is paused: tattler sinks resume hook continues it\n", "replay hook 0"},
		{"dead letters", "dead hook --replay --all", "2 of 2 dead letters accepted\n", "replay dead hook 2"},
		{"removed", "dead hook --drop --all", "2 dead letters removed for good\n", "drop hook 2"},
		{
			"skipped", "skip hook",
			"hook continues without change abcdef (/api/v1/nodes/n\\x1b[31m), which is now a dead letter; it failed with: 403 Forbidden\ntattler sinks dead hook abcdef --replay sends it again\n",
			"skip hook ",
		},
		{"one that is named", "skip hook abc", "without change abcdef", "skip hook abc"},
		{"refused", "remove hook", "sink hook is configured", ""},
	} {
		d.seen = nil
		out, _, err := tattler(t, path, strings.Fields(tc.args)...)
		if err != nil {
			out += err.Error()
		}
		if seen := strings.Join(d.seen, "; "); !strings.Contains(out, tc.want) || seen != tc.seen {
			t.Errorf("%s: tattler sinks %s says\n%s\nwant %q; seen %q", tc.why, tc.args, out, tc.want, seen)
		}
	}
	d.left = 1
	if out, _, err := tattler(t, path, "dead", "hook", "--replay", "--all"); err == nil || !strings.Contains(err.Error(), "1 dead letter refused again") || !strings.HasPrefix(out, "1 of 2") {
		t.Errorf("%s, %v", out, err)
	}
}
