package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRewind: the end of a replay survives a restart, and the furthest of several rewinds counts.
func TestRewind(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	is := func(why string, cursor, repeats int64) {
		t.Helper()
		seq, _, err := j.Cursor(ctx, "hook")
		upTo, rerr := j.Repeats(ctx, "hook")
		must(t, err, rerr)
		if seq != cursor || upTo != repeats {
			t.Errorf("%s: the cursor is at %d, repeats go up to %d; want %d and %d", why, seq, upTo, cursor, repeats)
		}
	}
	must(t, j.Rewind(ctx, "hook", 0))
	is("a sink without a cursor", 0, 0)
	must(t, j.SetCursor(ctx, "hook", 10), j.Rewind(ctx, "hook", 2))
	is("once", 2, 10)
	must(t, j.SetCursor(ctx, "hook", 9), j.Rewind(ctx, "hook", 1), j.Close())
	j = open(t, path)
	is("twice, and a restart", 1, 10)
	must(t, j.SetCursor(ctx, "hook", 100), j.Rewind(ctx, "hook", 5))
	is("further", 5, 100)
	must(t, j.RemoveSink(ctx, "hook"))
	is("removed", 0, 0)
}

// ended is a context that ends while a writer waits for the journal's lock.
type ended struct {
	context.Context
	j *Journal
}

func (e ended) Err() error {
	if e.j.mu.TryLock() {
		e.j.mu.Unlock()
		return nil
	}
	return context.Canceled
}

// TestPauseTooLate: a write that waits for another one, as with a slow disk, does not happen after its context has ended.
func TestPauseTooLate(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	if err := j.Pause(ended{t.Context(), j}, "hook", true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if all, err := j.Sinks(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestSkip: the dead letter and the cursor are written in one transaction.
func TestSkip(t *testing.T) {
	ctx := t.Context()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	must(t, j.SetCursor(ctx, "hook", 3))
	standing := func() (int64, int) {
		t.Helper()
		seq, _, err := j.Cursor(ctx, "hook")
		letters, lerr := j.DeadLetters(ctx, "hook")
		must(t, err, lerr)
		return seq, len(letters)
	}
	must(t, j.db.exec("CREATE TRIGGER broken BEFORE UPDATE ON sinks BEGIN SELECT RAISE(ABORT, 'broken'); END"))
	if _, err := j.Skip(ctx, DeadLetter{Sink: "hook", Seq: 4, ID: "a"}, 4); err == nil {
		t.Error("no error")
	}
	if seq, letters := standing(); seq != 3 || letters != 0 {
		t.Errorf("after a failure the cursor is at %d, with %d dead letters", seq, letters)
	}
	must(t, j.db.exec("DROP TRIGGER broken"))
	if _, err := j.Skip(ctx, DeadLetter{Sink: "hook", Seq: 4, ID: "a"}, 4); err != nil {
		t.Error(err)
	}
	if seq, letters := standing(); seq != 4 || letters != 1 {
		t.Errorf("the cursor is at %d, with %d dead letters", seq, letters)
	}
}

func TestSinks(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	if _, ok, err := j.Cursor(ctx, "hook"); ok || err != nil {
		t.Errorf("a cursor that was never set: %v, %v", ok, err)
	}
	letter := DeadLetter{Sink: "hook", Seq: 7, ID: "abc", Reason: "400 Bad Request", Attempts: 5, At: epoch, Body: []byte("{}")}
	must(t, j.SetCursor(ctx, "hook", 8), j.SetCursor(ctx, "hook", 3), j.Pause(ctx, "hook", true), j.Pause(ctx, "log", true))
	setAside(t, j, letter)
	letter.Reason = "401 Unauthorized"
	other := DeadLetter{Sink: "hook", Seq: 9, ID: "abd", At: epoch}
	setAside(t, j, letter)
	setAside(t, j, other)
	must(t, j.Close())

	j = open(t, path)
	if seq, ok, err := j.Cursor(ctx, "hook"); seq != 3 || !ok || err != nil {
		t.Errorf("the cursor is %d, %v, %v", seq, ok, err)
	}
	if _, ok, err := j.Cursor(ctx, "log"); ok || err != nil {
		t.Errorf("a paused sink without a cursor has one, %v", err)
	}
	sinks, err := j.Sinks(ctx)
	want := []Sink{{Name: "hook", Cursor: 3, HasCursor: true, Paused: true, Dead: 2}, {Name: "log", Paused: true}}
	if d := cmp.Diff(want, sinks); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	letters, err := j.DeadLetters(ctx, "hook")
	if d := cmp.Diff([]DeadLetter{letter, other}, letters); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	must(t, j.DropDeadLetters(ctx, "hook", 7, 8))
	if letters, err = j.DeadLetters(ctx, "hook"); len(letters) != 1 || letters[0].Seq != 9 || err != nil {
		t.Errorf("%v, %v", letters, err)
	}
	must(t, j.RemoveSink(ctx, "hook"))
	if sinks, err = j.Sinks(ctx); len(sinks) != 1 || err != nil {
		t.Errorf("%v, %v", sinks, err)
	}
	if letters, err = j.DeadLetters(ctx, "hook"); len(letters) != 0 || err != nil {
		t.Errorf("%v, %v", letters, err)
	}
}

// TestDeadLettersAreBounded fills a sink's dead letters and adds one more.
func TestDeadLettersAreBounded(t *testing.T) {
	ctx := t.Context()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	setAside(t, j, DeadLetter{Sink: "other", Seq: 1})
	must(t, j.write(ctx, "fill", func() error {
		return j.db.script(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO dead (sink, seq, change, reason, attempts) SELECT 'hook', i, '', '', 1 FROM n`, MaxDeadLetters))
	}))
	for i, want := range []int64{1, 0, 1} { // the second replaces the first
		if displaced, err := j.SetAside(ctx, DeadLetter{Sink: "hook", Seq: 1<<40 + int64(i/2)}); displaced != want || err != nil {
			t.Errorf("%d were displaced, %v; want %d", displaced, err, want)
		}
	}
	must(t, j.DropDeadLetters(ctx, "hook", 1<<40+1))
	for i, want := range []Sink{{Name: "hook", Dead: MaxDeadLetters - 1, Lost: 2}, {Name: "other", Dead: 1}} {
		if all, err := j.Sinks(ctx); err != nil || all[i] != want {
			t.Errorf("%+v, %v; want %+v", all[i], err, want)
		}
	}
	letters, err := j.DeadLetters(ctx, "hook")
	if err != nil || len(letters) != MaxDeadLetters-1 || letters[0].Seq != 3 || letters[len(letters)-1].Seq != 1<<40 {
		t.Errorf("%d letters from %d on, %v", len(letters), letters[0].Seq, err)
	}
	if letters, err = j.DeadLetters(ctx, "other"); len(letters) != 1 || err != nil {
		t.Errorf("the other sink has %d letters, %v", len(letters), err)
	}
}

func setAside(t *testing.T, j *Journal, d DeadLetter) {
	t.Helper()
	if displaced, err := j.SetAside(t.Context(), d); displaced != 0 || err != nil {
		t.Fatalf("%d were displaced out, %v", displaced, err)
	}
}

// TestSeqAt: the first change seen at a time or later counts, even if clocks jump, a block ends or changes are gone.
func TestSeqAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	var rows []Row
	for n := 1; n <= 3*blockSize; n++ { // change n is seen in second 10 n
		r := pod(event.Updated, 10*n)
		r.Time = r.At.Add(-time.Duration(n%7) * time.Hour) // when it happened does not matter
		rows = append(rows, r)
	}
	rows[299].At = epoch.Add(9000 * time.Second) // number 300, by a clock that was ahead
	add(t, j, rows...)
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	check := func(why string, at map[int]int64) {
		t.Helper()
		for second, want := range at {
			if got, err := r.SeqAt(t.Context(), epoch.Add(time.Duration(second)*time.Second)); got != want || err != nil {
				t.Errorf("%s, second %d: %d, %v; want %d", why, second, got, err, want)
			}
		}
	}
	all := map[int]int64{0: 0, 10: 0, 11: 1, 2560: 255, 2561: 256, 2990: 298, 2991: 299, 3001: 299, 5000: 299, 9000: 299, 9001: 3 * blockSize}
	check("as they are", all)
	if got, err := j.Retain(t.Context(), epoch.Add(5000*time.Second), Retention{Age: time.Second}, 1<<62); err != nil || got.Removed != 498 {
		t.Fatalf("%+v, %v", got, err)
	}
	check("without those before 4999", map[int]int64{0: 299, 4000: 299, 7000: 299, 9000: 299, 9001: 3 * blockSize})
	must(t, j.db.script("DELETE FROM changes"))
	check("without any", map[int]int64{0: 3 * blockSize})
}
