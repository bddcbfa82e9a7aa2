package integration

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestFrozen freezes the API server. The reported silence must begin at its last response, not when the silence
// was noticed.
func TestFrozen(t *testing.T) {
	t.Parallel()
	const frozen = 60 * time.Second // a client notices after 45 s
	const late = 30 * time.Second   // a busy machine reads the last response so late at most
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	own, client := ownCluster(ctx, t)
	w := startObserver(t, own)
	journal := filepath.Join(t.TempDir(), "journal.db")
	daemon := start(t, own, "run", "cm", "-n", "default", "--journal", journal)
	daemon.wait(t, daemon.err, "msg=recording")
	watch := start(t, own, "watch", "cm", "-n", "default")
	watch.wait(t, watch.err, "Waiting for changes")
	answered := time.Now()
	write(ctx, t, client, 1, "before")
	watch.wait(t, watch.out, "before")

	if err := own.FreezeAPIServer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.ThawAPIServer() })
	from := time.Now()
	wait(frozen)
	thawed := time.Now()
	if err := own.ThawAPIServer(); err != nil {
		t.Fatal(err)
	}
	write(ctx, t, client, 2, "after")
	watch.wait(t, watch.out, "after")
	watch.wait(t, watch.out, "resumed")
	daemon.wait(t, daemon.err, "the API server is back")

	said := regexp.MustCompile(`API server was (?:away|silent for) (?:(\d+) min ?)?(?:(\d+) s)?; resumed`).FindStringSubmatch(watch.read(t, watch.out))
	if said == nil {
		t.Fatalf("watch does not report the duration:\n%s", watch.read(t, watch.out))
	}
	minutes, _ := strconv.Atoi(said[1])
	seconds, _ := strconv.Atoi(said[2])
	lasted := time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second
	if least, most := frozen-late, time.Since(answered)+time.Second; lasted < least || lasted > most {
		t.Errorf("watch reports %v, want at least %v and at most %v", lasted, least, most)
	}

	var e seenEvent
	for began := time.Now(); ; pause() { // it is written after the catch-up
		out, _ := exec.Command(tattler(t), "log", "--journal", journal, "--op", "absent", "-o", "json").Output()
		if line := strings.TrimSpace(string(out)); line != "" {
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			break
		}
		if time.Since(began) > patience {
			t.Fatal("no absence in the journal")
		}
	}
	daemon.interrupt(t)
	watch.interrupt(t)
	for began := time.Now(); len(w.of("default", "cm", "c2")) == 0; pause() {
		if time.Since(began) > 2*patience {
			t.Fatal("the observer did not resume")
		}
	}
	out, err := exec.Command(tattler(t), "log", "--limit", "0", "--journal", journal).Output()
	if err != nil {
		t.Fatal(err)
	}
	(&truth{t, w, "default"}).check(string(out))
	golden(t, "API server frozen", "default", screensOf(t, own.Kubeconfig(), "log", "--limit", "0", "--journal", journal), goldenOptions{keep: 10, anyOrder: true})
	switch o := e.Data.Observed; {
	case e.Data.Absence == nil || e.Data.Absence.Reason != event.AbsenceUnreachable || o.After == nil:
		t.Errorf("the absence is %+v", e.Data)
	case o.After.After(from.Add(late)) || o.At.Before(thawed.Add(-time.Second)):
		t.Errorf("frozen from %v to %v, the absence is from %v to %v", from, thawed, o.After, o.At)
	}
}
