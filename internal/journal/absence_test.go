package journal

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestAbsentSince: an absence begins no earlier than the end of the last one, whatever was recorded last; an open one keeps
// its beginning. Before anything was recorded there is none.
func TestAbsentSince(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	at := func(s int) time.Time { return time.Unix(1_700_000_000+int64(s), 0).UTC() }
	j, err := Open(ctx, path, Options{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	want := func(since time.Time) {
		t.Helper()
		if got, err := j.AbsentSince(ctx, ""); err != nil || !got.Equal(since) {
			t.Errorf("since %v, %v; want %v", got, err, since)
		}
	}
	record := func(b Batch) {
		t.Helper()
		if _, err := j.Append(ctx, []Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	pods := Stream{GroupResource: "pods"}
	absence := func(from, to int) Batch {
		return Batch{Rows: []Row{{Meta: Meta{
			Op: event.Absent, Kind: AbsenceKind, Since: at(from), At: at(to), Time: at(to), Absence: &event.Absence{Reason: event.AbsenceStopped},
		}}}}
	}
	want(time.Time{})
	if err := j.NoteAbsent(ctx, "", at(5)); err != nil {
		t.Fatal(err)
	}
	want(time.Time{}) // what never began cannot stop
	record(Batch{Stream: pods, Head: Head{Version: "1", Epoch: 1, At: at(10)}})
	want(at(10)) // the process was killed
	if err := j.NoteAbsent(ctx, "", at(20)); err != nil {
		t.Fatal(err)
	}
	want(at(10)) // killed before it had caught up
	record(absence(10, 30))
	record(Batch{Stream: pods, Head: Head{Version: "2", Epoch: 1, At: at(29)}}) // still in flight
	want(at(30))
	record(absence(30, 31))
	if err := j.NoteAbsent(ctx, "", at(40)); err != nil {
		t.Fatal(err)
	}
	want(at(40)) // stopped
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = Open(ctx, path, Options{}); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	want(at(40))
}
