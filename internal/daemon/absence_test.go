package daemon

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/deliver"
)

// TestAbsence: each time that the daemon did not run is reported once, with the changes caught up: after a
// stop, which it records; after a kill, whose last sign of life is the newest batch; and after a lost history.
func TestAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir, got := newRig(t), t.TempDir(), &sent{}
		o := Options{Sinks: []deliver.Options{{Name: "x", Sink: got}}}
		path := filepath.Join(dir, "journal.db")
		run := func(then func()) {
			t.Helper()
			d := r.daemon(dir, o)
			d.pass(5 * time.Second)
			then()
			d.stop()
		}
		r.put("a", "1")
		run(func() {})
		if len(got.absences) > 0 {
			t.Fatalf("a new journal: %+v", got.absences)
		}

		stopped := time.Now().UTC()
		<-time.After(time.Minute)
		run(func() {})
		r.put("a", "2")
		r.put("b", "1")
		back := time.Now().UTC()
		<-time.After(time.Hour)
		run(func() {})

		killed := forgetEnd(t, path)
		<-time.After(time.Hour)
		r.server.Put(configMaps, "shop", "c", map[string]any{})
		r.server.Compact()
		r.server.Delete(configMaps, "shop", "a")
		r.server.Compact()
		run(func() {})

		want := []event.Data{
			absent(stopped, stopped.Add(time.Minute), 0, 0),
			absent(back, back.Add(time.Hour), 2, 0),
			absent(killed, time.Time{}, 2, 1),
		}
		if len(got.absences) != len(want) {
			t.Fatalf("%d absences: %+v", len(got.absences), got.absences)
		}
		want[2].Observed.At = got.absences[2].Observed.At
		if d := cmp.Diff(want, got.absences); d != "" {
			t.Errorf("absences (-want +got):\n%s", d)
		}
	})
}

// absent returns the data of an absence's event.
func absent(from, to time.Time, changes, incomplete int64) event.Data {
	severity := event.Normal
	if incomplete > 0 {
		severity = event.Warning
	}
	return event.Data{
		Op: event.Absent, Severity: severity, Resource: event.AbsenceResource, Observed: event.Observed{After: &from, At: to},
		Absence: &event.Absence{Reason: event.AbsenceStopped, Changes: changes, Incomplete: incomplete},
	}
}

// forgetEnd makes a journal look like that of a killed daemon, and returns the last sign of life.
func forgetEnd(t *testing.T, path string) time.Time {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec("UPDATE clusters SET absent = NULL"); err != nil {
		t.Fatal(err)
	}
	s, _, err := c.Prepare("SELECT max((SELECT max(at) FROM streams), (SELECT max(absence) FROM clusters))")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !s.Step() || s.ColumnInt64(0) == 0 {
		t.Fatal("no stream was recorded", s.Err())
	}
	return time.UnixMilli(s.ColumnInt64(0)).UTC()
}
