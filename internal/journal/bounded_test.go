package journal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// jumping makes changes of a clock that runs, and jumps forth and back.
type jumping struct {
	*rand.Rand
	at      time.Time
	version int
}

func (c *jumping) rows(n int) (rows []Row) {
	for range n {
		c.version++
		c.at = c.at.Add(time.Duration(c.IntN(2000)) * time.Millisecond)
		if c.IntN(150) == 0 {
			c.at = c.at.Add(time.Duration(c.IntN(7200)-3600) * time.Second)
		}
		r := pod(event.Updated, c.version)
		r.Time, r.At = c.at, c.at
		switch c.IntN(20) {
		case 0: // seen late
			r.Time = c.at.Add(-time.Duration(c.IntN(600)) * time.Second)
		case 1: // the server's clock is ahead
			r.Time = c.at.Add(time.Duration(c.IntN(5)) * time.Second)
		case 2: // an interval
			r.Since, r.Net = c.at.Add(-time.Duration(c.IntN(600))*time.Second), true
		}
		if c.version%500 == 1 {
			r.Op, r.Before = event.Snapshot, nil
			r.Time = c.at.Add(-10_000 * time.Hour)
		}
		r.Quiet = r.Op == event.Updated && c.IntN(4) == 0
		rows = append(rows, r)
	}
	return rows
}

// TestBoundedByTime: whatever the clock did, and after removals, a query of times finds what the same query without them
// selects, and so do counts, and the search for when a change was seen.
func TestBoundedByTime(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		c := &jumping{Rand: rand.New(rand.NewPCG(seed, 3)), at: epoch}
		path := filepath.Join(t.TempDir(), "journal.db")
		j := open(t, path)
		for round := range 3 {
			for range 20 {
				add(t, j, c.rows(1+c.IntN(100))...)
			}
			r, err := OpenReader(t.Context(), path)
			must(t, err)
			c.check(t, r)
			must(t, r.Close())
			switch round {
			case 0: // quiet ones go first, wherever they are; then the oldest
				p := pruner{j: j, done: &Retained{}}
				must(t, j.write(t.Context(), "shrink", func() error { return p.step(c.at, Retention{Size: 1}, 1<<62) }))
			case 1: // some whole blocks, wherever they are
				first := int64(1 + c.IntN(c.version/2))
				_, err := j.Retain(t.Context(), c.at, Retention{Size: 1}, first+int64(c.IntN(5*blockSize)))
				must(t, err)
			case 2:
				must(t, j.Purge(t.Context(), Purge{Until: c.at.Add(-time.Duration(c.IntN(3600)) * time.Second)}, nil))
			}
			verify(t, path)
		}
		if t.Failed() {
			t.Fatalf("replay with JOURNAL_SEED=%d", seed)
		}
	}
}

// check compares random queries of times with all changes.
func (c *jumping) check(t *testing.T, r *Reader) {
	t.Helper()
	var all []Entry
	for e, err := range r.Rows(t.Context(), Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		must(t, err)
		all = append(all, e)
	}
	some := func() time.Time {
		return all[c.IntN(len(all))].At.Truncate(time.Second).Add(time.Duration(c.IntN(3)) * time.Second)
	}
	for range 30 {
		q := Query{Since: some(), Quiet: c.IntN(2) == 0, Snapshots: c.IntN(2) == 0, OldestFirst: c.IntN(2) == 0}
		if c.IntN(3) > 0 {
			q.Until = q.Since.Add(time.Duration(c.IntN(900)) * time.Second)
		}
		if c.IntN(5) == 0 {
			q.Since = time.Time{}
		}
		var got, want []int64
		for e, err := range r.Rows(t.Context(), q) {
			must(t, err)
			got = append(got, e.Seq)
		}
		seen := int64(-1)
		for i := range all {
			if q.Has(&all[i].Meta, "prod") {
				want = append(want, all[i].Seq)
			}
			if seen < 0 && !all[i].At.Before(q.Since) {
				seen = all[i].Seq - 1
			}
		}
		if !q.OldestFirst {
			slices.Reverse(want)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%+v: (-all +bounded)\n%s", q, d)
		}
		if seq, err := r.SeqAt(t.Context(), q.Since); err != nil || seen >= 0 && seq != seen {
			t.Errorf("seen from %v on: %d, %v; want %d", q.Since, seq, err, seen)
		}
		if !q.Since.IsZero() && !q.Until.IsZero() {
			c.counts(t, r, q, all)
		}
	}
}

func (c *jumping) counts(t *testing.T, r *Reader, q Query, all []Entry) {
	t.Helper()
	q.Quiet = false
	got, want := map[string]int{}, map[string]int{}
	series, err := r.Counts(t.Context(), q, time.Second)
	must(t, err)
	for _, s := range series {
		for i, n := range s.Counts {
			if n > 0 {
				got[fmt.Sprint(s.Op, q.Since.Unix()+int64(i))] += n
			}
		}
	}
	for i := range all {
		e := &all[i]
		if !e.Quiet && !e.Time.Before(q.Since) && e.Time.Before(q.Until) && (q.Snapshots || e.Op != event.Snapshot) {
			want[fmt.Sprint(e.Op, e.Time.Unix())]++
		}
	}
	if !maps.Equal(want, got) {
		t.Errorf("%+v: (-all +counted)\n%s", q, cmp.Diff(want, got))
	}
}

// steps returns how many steps SQLite has taken for a reader.
func (db *db) steps() (n int) {
	for _, s := range db.stmts {
		n += s.Status(sqlite3.STMTSTATUS_VM_STEP, false)
	}
	return n
}

// TestShortWindow: a chart reads only the counts of its time, and few of the other blocks' times.
func TestShortWindow(t *testing.T) {
	const all = 60 * blockSize
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	for v := 1; v <= all; {
		var rows []Row
		for range 1000 {
			r := pod(event.Updated, v)
			r.UID, r.Before = strconv.Itoa(v%100), nil
			rows = append(rows, r)
			v++
		}
		add(t, j, rows...)
	}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	at := func(v int) time.Time { return epoch.Add(time.Duration(v) * time.Second) }
	cost := func(since, until int) int {
		t.Helper()
		before := r.db.steps()
		q := Query{Since: at(since), Until: at(until)}
		series, err := r.Counts(t.Context(), q, time.Hour)
		n := 0
		for _, s := range series {
			for _, of := range s.Counts {
				n += of
			}
		}
		if want := until - since; err != nil || n != want {
			t.Errorf("%d to %d: %d changes, %v; want %d", since, until, n, err, want)
		}
		return r.db.steps() - before
	}
	whole := cost(1, all)
	must(t, j.db.script(fmt.Sprintf("UPDATE block_counts SET counts = x'ff' WHERE first NOT BETWEEN %d AND %d AND first < %d", 30*blockSize, 32*blockSize, 58*blockSize)))
	if newest := cost(all-300, all); newest > whole/2 {
		t.Errorf("a chart of the newest 300 changes takes %d of SQLite's steps, one of all %d", newest, whole)
	}
	cost(30*blockSize+100, 31*blockSize+100)
}
