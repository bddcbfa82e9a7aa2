package journal

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// TestRetainSize limits a busy journal's size: quiet changes go first, the rest stays readable, and the file shrinks.
func TestRetainSize(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	f := &fleet{nodes: 20}
	listed := 0
	for f.n < 6000 {
		batch := f.batch(300)
		for i := range batch[0].Rows {
			r := &batch[0].Rows[i]
			if r.Quiet = r.Op == event.Updated && i%10 != 0; !r.Quiet {
				listed++
			}
		}
		if _, err := j.Append(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	full, err := j.Retain(ctx, epoch, Retention{Age: 1 << 62, Size: 1 << 40}, 1<<62)
	if err != nil || full.Removed != 0 {
		t.Fatalf("%+v, %v", full, err)
	}
	half, err := j.Retain(ctx, epoch, Retention{Size: full.Used / 2}, 1<<62)
	if err != nil || half.Used > full.Used/2 || half.Removed != half.Quiet || half.Removed == 0 {
		t.Errorf("half of %d: %+v, %v; want quiet ones to go, and enough of them", full.Used, half, err)
	}
	held, err := j.Retain(ctx, epoch, Retention{Size: 1}, 3000)
	if err != nil || held.Quiet == held.Removed {
		t.Errorf("what sinks need: %+v, %v", held, err)
	}
	r, err := OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stats, err := r.Stats(ctx)
	if err != nil || stats.First <= 3000 || stats.First > 3010 || stats.Last != 6000 || stats.Live != 20 || stats.Changes != 6000-int64(half.Removed+held.Removed) {
		t.Errorf("%+v, %v", stats, err)
	}
	if rep, err := r.Verify(ctx, Verifying{}); err != nil || rep.Damaged != 0 || int64(rep.Changes) != stats.Changes {
		t.Errorf("%+v, %v", rep, err)
	}
	all, free, _, err := j.db.pages()
	if err != nil || free >= max(retainPages, all/4) {
		t.Errorf("%d of %d pages are free, %v", free, all, err)
	}
	if stats.Newest.Before(stats.Oldest) || stats.Newest.After(epoch.Add(time.Hour)) {
		t.Errorf("from %v to %v", stats.Oldest, stats.Newest)
	}
}

// TestRetainDamaged removes a quiet change next to damage: the damage stays known, and retention continues.
func TestRetainDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	quiet := pod(event.Updated, 3)
	quiet.Quiet = true
	add(t, j, pod(event.Created, 1), pod(event.Updated, 2), quiet, pod(event.Updated, 4))
	must(t, j.db.script("UPDATE contents SET before = x'09' || substr(before, 2) WHERE seq = 3"))
	p := pruner{j: j, done: &Retained{}}
	if err := j.write(t.Context(), "shrink", func() error { return p.step(epoch, Retention{Size: 1}, 4) }); err != nil || p.removed != 1 {
		t.Fatalf("%d were removed, %v", p.removed, err)
	}
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	damaged := map[int64]bool{}
	for e, err := range r.Rows(t.Context(), Query{Quiet: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		_, _, err := e.Contents(t.Context())
		var d *DamagedError
		damaged[e.Seq] = errors.As(err, &d)
	}
	if len(damaged) != 3 || !damaged[1] || !damaged[2] || damaged[4] {
		t.Errorf("changes and whether they are damaged: %v", damaged)
	}
}

// TestRetainAge: changes that are too old go, wherever they stand. One that a clock dated far ahead stays until its time
// comes, and keeps none of those behind it, nor their blocks.
func TestRetainAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	const n = 5*blockSize + 10
	var rows []Row
	for v := 1; v <= n; v++ {
		rows = append(rows, pod(event.Updated, v))
	}
	rows[99].At = epoch.Add(9000 * time.Second)
	rows[1199].At = epoch.Add(-time.Hour) // a clock that was behind
	add(t, j, rows...)
	left := func(now int, upTo, removed int64, want ...int64) {
		t.Helper()
		got, err := j.Retain(t.Context(), epoch.Add(time.Duration(now)*time.Second), Retention{Age: 100 * time.Second}, upTo)
		if err != nil || got.Removed != int(removed) {
			t.Errorf("at %d: %+v, %v; want %d", now, got, err, removed)
		}
		var firsts []int64
		must(t, j.db.query("SELECT first FROM blocks ORDER BY first", nil, func(s *sqlite3.Stmt) error {
			firsts = append(firsts, s.ColumnInt64(0))
			return nil
		}))
		if d := cmp.Diff(want, firsts); d != "" {
			t.Errorf("at %d, blocks (-want +got):\n%s", now, d)
		}
		verify(t, path)
	}
	left(150, 20, 21-1, 1, 257, 513, 769, 1025, 1281)   // only what sinks have got
	left(150, n, 49-20+1, 1, 257, 513, 769, 1025, 1281) // and the one that seems old
	left(1000, n, 899-49-1, 1, 769, 1025, 1281)         // the 100th stays
	left(1000, n, 0, 1, 769, 1025, 1281)                // nothing is left to do
	left(9000, n, n-899-1, 1, 1281)                     // all but the 100th
	left(9101, n, 1, 1281)
	if last, err := j.Last(t.Context()); last != n || err != nil {
		t.Errorf("the last number is %d, %v", last, err)
	}
}

// TestRetainLost: changes that a sink will never get are counted in the transaction that removes them, except quiet ones,
// and snapshots for sinks that do not ask for them.
func TestRetainLost(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	quiet := pod(event.Updated, 3)
	quiet.Quiet = true
	add(t, j, pod(event.Snapshot, 1), pod(event.Updated, 2), quiet, pod(event.Updated, 4), pod(event.Updated, 5), pod(event.Deleted, 6))
	must(t, j.SetCursor(ctx, "all", 0), j.SetCursor(ctx, "changes", 0), j.SetCursor(ctx, "later", 4), j.SetCursor(ctx, "done", 6), j.Pause(ctx, "new", true))
	check := func(why string, got []Missed, want []Missed, sums ...int64) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", why, d)
		}
		sinks, err := j.Sinks(ctx)
		must(t, err)
		var lost []int64
		for _, s := range sinks {
			lost = append(lost, s.Lost)
		}
		if d := cmp.Diff(sums, lost); d != "" {
			t.Errorf("%s, in the file (-want +got):\n%s", why, d)
		}
	}
	keep := func(age time.Duration) Retention {
		return Retention{Age: age, Snapshots: []string{"all", "done"}}
	}
	got, err := j.Retain(ctx, epoch.Add(10*time.Second), keep(5500*time.Millisecond), 6)
	must(t, err)
	check("up to 4", got.Lost, []Missed{{"all", 3}, {"changes", 2}}, 3, 2, 0, 0, 0)
	got, err = j.Retain(ctx, epoch.Add(10*time.Second), keep(5500*time.Millisecond), 6)
	must(t, err)
	check("again", got.Lost, nil, 3, 2, 0, 0, 0)

	// If the transaction fails, nothing is removed or counted.
	must(t, j.db.script("CREATE TEMP TRIGGER no BEFORE DELETE ON changes BEGIN SELECT RAISE(ABORT, 'no'); END"))
	if got, err = j.Retain(ctx, epoch.Add(time.Hour), keep(time.Second), 6); err == nil || got.Removed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	check("a failure", got.Lost, nil, 3, 2, 0, 0, 0)
	must(t, j.db.script("DROP TRIGGER no"))

	got, err = j.Retain(ctx, epoch.Add(time.Hour), Retention{Size: 1}, 6)
	must(t, err)
	check("the rest, by size", got.Lost, []Missed{{"all", 2}, {"changes", 2}, {"later", 2}}, 5, 4, 0, 2, 0)
	must(t, j.Close())
	j = open(t, path)
	check("after a restart", nil, nil, 5, 4, 0, 2, 0)
}
