package journal

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
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
	must(t, j.SetCursor(ctx, "hook", 8), j.SetCursor(ctx, "hook", 3), j.Pause(ctx, "hook", true), j.Pause(ctx, "log", true), j.Bury(ctx, letter))
	letter.Reason = "401 Unauthorized"
	other := DeadLetter{Sink: "hook", Seq: 9, ID: "abd", At: epoch}
	must(t, j.Bury(ctx, letter), j.Bury(ctx, other), j.Close())

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
	must(t, j.Exhume(ctx, "hook", 7, 8))
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

// TestDeadLettersAreBounded fills the box and lets one more in.
func TestDeadLettersAreBounded(t *testing.T) {
	ctx := t.Context()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	must(t, j.Bury(ctx, DeadLetter{Sink: "other", Seq: 1}), j.write(ctx, "fill", func() error {
		return j.db.script(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO dead (sink, seq, change, reason, attempts) SELECT 'hook', i, '', '', 1 FROM n`, MaxDeadLetters))
	}), j.Bury(ctx, DeadLetter{Sink: "hook", Seq: 1 << 40}))
	letters, err := j.DeadLetters(ctx, "hook")
	if err != nil || len(letters) != MaxDeadLetters || letters[0].Seq != 2 || letters[len(letters)-1].Seq != 1<<40 {
		t.Errorf("%d letters from %d on, %v", len(letters), letters[0].Seq, err)
	}
	if letters, err = j.DeadLetters(ctx, "other"); len(letters) != 1 || err != nil {
		t.Errorf("the other sink has %d letters, %v", len(letters), err)
	}
}

func TestSeqAt(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	add(t, j, pod(event.Created, 10), pod(event.Updated, 20), pod(event.Updated, 30))
	for second, want := range map[int]int64{0: 0, 10: 0, 11: 1, 30: 2, 31: 3} {
		if got, err := j.SeqAt(t.Context(), epoch.Add(time.Duration(second)*time.Second)); got != want || err != nil {
			t.Errorf("at second %d: %d, %v; want %d", second, got, err, want)
		}
	}
}
