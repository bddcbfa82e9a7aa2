package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/render"
)

// TestOutage kills the API server under a daemon, and checks the outage that the journal reports.
func TestOutage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	own, client := ownCluster(ctx, t)
	write(ctx, t, client, 1, "before")
	journal := filepath.Join(t.TempDir(), "journal.db")
	daemon := start(t, own, "run", "cm", "-n", "default", "--journal", journal)
	daemon.wait(t, daemon.err, "msg=recording")

	killed := time.Now()
	if err := own.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	daemon.wait(t, daemon.err, "the API server is away")
	noticed := time.Now() // more than a second after the daemon saw it, for a reconnect is not reported
	wait(7 * time.Second) // longer than a reconnect
	if err := own.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	daemon.wait(t, daemon.err, "the API server is back")
	back := time.Now()

	query := func(more ...string) string {
		t.Helper()
		cmd := exec.Command(tattler(t), append([]string{"log", "--journal", journal, "--op", "absent"}, more...)...)
		cmd.Env = append(os.Environ(), "TZ=UTC")
		out, err := cmd.Output()
		if err != nil && len(out) > 0 {
			t.Fatalf("tattler log: %v", err)
		}
		return string(out)
	}
	for began := time.Now(); query("-o", "json") == ""; pause() { // it is written after the catch-up
		if time.Since(began) > patience {
			t.Fatal("no absence in the journal")
		}
	}
	daemon.interrupt(t)
	lines := strings.Split(strings.TrimSpace(query("-o", "json")), "\n")
	var e seenEvent
	if err := json.Unmarshal([]byte(lines[0]), &e); err != nil || len(lines) != 1 {
		t.Fatalf("%v: %q", err, lines)
	}
	a, o := e.Data.Absence, e.Data.Observed
	switch {
	case a == nil || o.After == nil || a.Reason != event.AbsenceUnreachable:
		t.Fatalf("the absence is %+v", e.Data)
	case o.After.Before(killed.Add(-time.Second)) || o.After.After(noticed.Add(-time.Second)):
		t.Errorf("killed at %v and noticed at %v, but the absence begins at %v", killed, noticed, o.After)
	case o.At.Before(killed.Add(7*time.Second)) || o.At.After(back):
		t.Errorf("back at %v, but the absence ends at %v", back, o.At)
	}
	want := fmt.Sprintf("%s/%s ! tattler could not reach the API server for %s: ", o.After.Format(time.RFC3339), o.At.Format(time.RFC3339), render.Duration(o.At.Sub(*o.After)))
	if got := squeezed(query()); !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}
