package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/usage"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// serve answers with a status beside a journal.
func serve(t *testing.T, journal string, s control.Status) {
	t.Helper()
	l, err := control.Listen(journal)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- control.Serve(ctx, l, control.Options{Status: func(context.Context) (control.Status, error) { return s, nil }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var out bytes.Buffer
	run := func(output string) (string, error) {
		out.Reset()
		o := &Options{
			IO:   &terminal.IO{Out: &out, Err: &out, Width: func() int { return 0 }},
			Past: past.Flags{Path: path}, Output: output, Now: func() time.Time { return time.Unix(1000, 0) },
		}
		err := Run(t.Context(), o)
		return out.String(), err
	}
	var none *control.NoDaemonError
	if text, err := run("text"); !errors.As(err, &none) || text != "" {
		t.Errorf("no daemon: %v, %s", err, text)
	}
	serve(t, path, control.Status{Version: "1.2.3", Cluster: "prod", PID: 7, Settled: true, Started: time.Unix(940, 0)})
	if text, err := run("text"); err != nil || !strings.HasPrefix(text, "tattler 1.2.3 records prod: process 7, up 60s\n") {
		t.Errorf("%v, %s", err, text)
	}
	text, err := run("json")
	var s control.Status
	if jerr := json.Unmarshal([]byte(text), &s); err != nil || jerr != nil || s.PID != 7 {
		t.Errorf("%v, %v, %s", err, jerr, text)
	}
	var wrong *usage.Error
	if _, err := run("yaml"); !errors.As(err, &wrong) {
		t.Error(err)
	}
}

// TestMigrating: a daemon that migrates its journal says so, and omits unknown values.
func TestMigrating(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	serve(t, path, control.Status{
		Version: "1.2.3", Cluster: "prod", PID: 7, Started: time.Unix(940, 0), Starting: "opening the journal",
		Journal: control.Journal{Path: "/j/journal.db"},
	})
	var out bytes.Buffer
	o := &Options{
		IO:   &terminal.IO{Out: &out, Err: &out, Width: func() int { return 0 }},
		Past: past.Flags{Path: path}, Output: "text", Now: func() time.Time { return time.Unix(1000, 0) },
	}
	want := "tattler 1.2.3 is starting: process 7, up 60s\nIt is opening the journal. Changes made meanwhile are recorded later, as far as\nthe API server still has them.\n\nJournal   /j/journal.db\n"
	if err := Run(t.Context(), o); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}
