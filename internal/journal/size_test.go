package journal

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

func TestSize(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	r, err := OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	check := func(why string, want Size) {
		t.Helper()
		got, err := r.Size(ctx)
		if got.Used < 4096 || got.Log < 0 || got.Log == 0 && got.Last > 0 { // a new one has no log
			t.Errorf("%s: %d bytes, and %d of log", why, got.Used, got.Log)
		}
		got.Used, got.Free, got.Log = 0, 0, 0
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", why, err, d)
		}
	}
	seen := func(after int64, want time.Time) {
		t.Helper()
		if at, err := r.SeenAfter(ctx, after); !at.Equal(want) || err != nil {
			t.Errorf("behind %d: %s, %v", after, at, err)
		}
	}
	at := func(version int) time.Time { return epoch.Add(time.Duration(version) * time.Second) }
	check("empty", Size{})
	seen(0, time.Time{})
	add(t, j, pod(event.Created, 1), pod(event.Updated, 2), pod(event.Updated, 3))
	check("three", Size{First: 1, Last: 3, Oldest: at(1), Newest: at(3)})
	seen(0, at(1))
	seen(2, at(3))
	seen(3, time.Time{})
	if _, err := j.Retain(ctx, at(4), Retention{Age: 2500 * time.Millisecond}, 3); err != nil {
		t.Fatal(err)
	}
	check("without the oldest", Size{First: 2, Last: 3, Oldest: at(2), Newest: at(3)})
	seen(0, at(2))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Size(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestReadSinks: a reader sees the same sinks as the writer, without bodies of dead letters.
func TestReadSinks(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	letter := DeadLetter{Sink: "hook", Seq: 7, ID: "abc", Reason: "400 Bad Request", Attempts: 5, At: epoch, Body: []byte("{}")}
	must(t, j.SetCursor(ctx, "hook", 8), j.Pause(ctx, "log", true))
	setAside(t, j, letter)
	r, err := OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want, err := j.Sinks(ctx)
	must(t, err)
	got, err := r.Sinks(ctx)
	if d := cmp.Diff(want, got); d != "" || err != nil || len(got) != 2 {
		t.Errorf("%v\n%s", err, d)
	}
	letter.Body = nil
	dead, err := r.DeadLetters(ctx, "hook")
	if d := cmp.Diff([]DeadLetter{letter}, dead); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}
