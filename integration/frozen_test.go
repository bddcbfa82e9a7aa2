package integration

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestPaused stops the daemon's process while objects are written. The changes are recorded with their times or with an
// interval, and the absence is in the log.
func TestPaused(t *testing.T) {
	t.Parallel()
	const paused = 15 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	own, client := ownCluster(ctx, t)
	w := startObserver(t, own)
	journal := filepath.Join(t.TempDir(), "journal.db")
	daemon := start(t, own, "run", "cm", "-n", "default", "--journal", journal)
	daemon.wait(t, daemon.err, "msg=recording")
	logged := func(more ...string) (all []seenEvent) {
		t.Helper()
		out, err := exec.Command(tattler(t), append([]string{"log", "--limit", "0", "--journal", journal, "-o", "json"}, more...)...).Output()
		if err != nil && len(out) > 0 {
			t.Fatal(err)
		}
		for text := range strings.Lines(string(out)) {
			var e seenEvent
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			all = append(all, e)
		}
		return all
	}
	await := func(args ...string) []seenEvent {
		t.Helper()
		for began := time.Now(); ; pause() {
			if all := logged(args...); len(all) > 0 {
				return all
			}
			if time.Since(began) > patience {
				t.Fatalf("nothing in the log for %q", args)
			}
		}
	}
	for i := range 4 {
		write(ctx, t, client, i, "before")
	}
	await("cm/c3")

	if err := daemon.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	write(ctx, t, client, 1, "meanwhile")
	if err := client.CoreV1().ConfigMaps("default").Delete(ctx, "c2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	write(ctx, t, client, 4, "meanwhile")
	written := time.Now()
	wait(paused)
	until := time.Now()
	if err := daemon.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	write(ctx, t, client, 3, "after")
	await("cm/c3", "--op", "updated")
	a := await("--op", "absent")[0].Data
	if o := a.Observed; a.Absence == nil || a.Absence.Reason != event.AbsenceStopped || o.After == nil || o.After.After(from.Add(time.Second)) || o.At.Before(until) {
		t.Errorf("stopped from %v to %v, the absence is %+v", from, until, a)
	}
	for _, e := range append(append(await("cm/c1", "--op", "updated"), await("cm/c2", "--op", "deleted")...), await("cm/c4", "--op", "created")...) {
		o := e.Data.Observed
		exact := !e.Time.Before(from.Truncate(time.Second)) && !e.Time.After(written)
		within := o.After != nil && o.After.Before(written) && !o.At.Before(from)
		if !exact && !(within && e.Time.Equal(o.At)) {
			t.Errorf("%s of %s between %v and %v has time %v, observed from %v to %v", e.Data.Op, e.Data.Resource.Name, from, written, e.Time, o.After, o.At)
		}
		if o.After == nil {
			t.Errorf("%s of %s looks live", e.Data.Op, e.Data.Resource.Name)
		}
	}
	daemon.interrupt(t)
	for began := time.Now(); len(w.of("default", "cm", "c4")) == 0; pause() {
		if time.Since(began) > patience {
			t.Fatal("the observer did not see the last change")
		}
	}
	out, err := exec.Command(tattler(t), "log", "--limit", "0", "--journal", journal).Output()
	if err != nil {
		t.Fatal(err)
	}
	(&truth{t, w, "default"}).check(string(out))
}
