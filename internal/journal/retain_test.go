package journal

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestRetainSize keeps a busy journal small: quiet changes go first, what is left can be read, and the
// file gets smaller.
func TestRetainSize(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	f := &fleet{nodes: 20}
	loud := 0
	for f.n < 6000 {
		batch := f.batch(300)
		for i := range batch[0].Rows {
			r := &batch[0].Rows[i]
			if r.Quiet = r.Op == event.Updated && i%10 != 0; !r.Quiet {
				loud++
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

// TestRetainDamaged removes a quiet change next to damage: the damage stays known, and retention goes
// on.
func TestRetainDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	quiet := pod(event.Updated, 3)
	quiet.Quiet = true
	add(t, j, pod(event.Created, 1), pod(event.Updated, 2), quiet, pod(event.Updated, 4))
	must(t, j.db.script("UPDATE changes SET before = x'09' || substr(before, 2) WHERE seq = 3"))
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
