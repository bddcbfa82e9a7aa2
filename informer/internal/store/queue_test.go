package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStuck: a consumer that never takes costs memory for the objects that differ, and nothing once it has caught up.
func TestStuck(t *testing.T) {
	s, _ := listed(t, 1<<20)
	q := NewQueue(1, QueueOptions{Latest: true})
	s.Subscribe(q, time.Time{})
	drain(t, q)
	rv := 10
	commit := func(c func(rv string) Change, at int64) {
		rv++
		s.Commit(Commit{Changes: []Change{c(strconv.Itoa(rv))}, Version: strconv.Itoa(rv), At: time.Unix(at, 0)})
	}
	for i := range 1000 { // many distinct names
		name := "short" + strconv.Itoa(i)
		commit(func(rv string) Change { return put(name, name, rv) }, 1)
		commit(func(rv string) Change { return del(name, name, rv) }, 1)
	}
	if l := q.Lag(); l != (Lag{}) {
		t.Errorf("lag %+v for objects that came and went unseen", l)
	}
	for i := range int64(1000) {
		commit(func(rv string) Change { return put("a", "a1", rv) }, 5+i)
	}
	l := q.Lag()
	if l.Objects != 1 || l.Bytes < perNode || l.Bytes > perNode+512 || !l.Oldest.Equal(time.Unix(5, 0)) {
		t.Errorf("lag %+v after 1,000 updates of one object", l)
	}
	for i := range 1000 {
		name := "long" + strconv.Itoa(i)
		commit(func(rv string) Change { return put(name, name, rv) }, 9)
	}
	if l := q.Lag(); l.Objects != 1001 {
		t.Errorf("lag %+v after 1,000 more objects", l)
	}
	drain(t, q)
	f := &q.folds[0]
	if q.Lag() != (Lag{}) || len(f.nodes.slots) > maxIdle {
		t.Errorf("drained, %d slots are kept; lag %+v", len(f.nodes.slots), q.Lag())
	}
}

func TestFoldIsTakenInPieces(t *testing.T) {
	s, q := New(0), NewQueue(1, QueueOptions{Budget: 1})
	s.Begin(false, 0)
	var all []Change
	for i := range maxBatch + 1 {
		all = append(all, put("o"+strconv.Itoa(i), "u"+strconv.Itoa(i), strconv.Itoa(i+1)))
	}
	s.Commit(Commit{Changes: all, Version: "900", Sweep: true})
	s.Subscribe(q, time.Time{})
	first, _, _ := q.take()
	second, _, _ := q.take()
	if len(first.Deltas) != maxBatch || first.Phase != Listing || first.Version != "" {
		t.Errorf("first piece: %d deltas, phase %d, version %q", len(first.Deltas), first.Phase, first.Version)
	}
	if len(second.Deltas) != 1 || second.Phase != Live || second.Version != "900" || second.Gap != nil {
		t.Errorf("second piece: %s", text(second))
	}
}

func TestLateFeedSeesEachChangeOnce(t *testing.T) {
	s, early := listed(t, 1<<20)
	late := NewQueue(1, QueueOptions{Budget: 1 << 20})
	s.Subscribe(late, time.Time{})
	s.Commit(Commit{Changes: []Change{put("c", "c1", "5")}, Version: "5"})
	if got, want := drain(t, early), "+c/c1 >5 =5"; got != want {
		t.Errorf("early: %q, want %q", got, want)
	}
	got := drain(t, late)
	for _, want := range []string{"+a/a1 >1i", "+b/b1 >2i", "+c/c1 >5", "=5"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("late: %q lacks %q", got, want)
		}
	}
}

// TestQueuesDoNotShareExtendedBatches: two queues extend the batch of one commit. One's consumer may read it while
// the writer extends the other's.
func TestQueuesDoNotShareExtendedBatches(t *testing.T) {
	s, q := listed(t, 1<<20)
	other := NewQueue(1, QueueOptions{Budget: 1 << 20})
	s.Subscribe(other, time.Time{})
	drain(t, other)
	s.Commit(Commit{Changes: []Change{put("a", "a1", "5"), put("a", "a1", "6"), put("a", "a1", "7")}, Version: "7"})
	s.Commit(Commit{Changes: []Change{put("a", "a1", "8")}, Version: "8"})
	x, _, _ := q.take()
	y, _, _ := other.take()
	if got, want := text(x), "~a/a1 1>5 ~a/a1 5>6 ~a/a1 6>7 ~a/a1 7>8 =8"; got != want || text(y) != want {
		t.Fatalf("got %q and %q, want %q", got, text(y), want)
	}
	if &x.Deltas[3] == &y.Deltas[3] {
		t.Error("both have the same array")
	}
}

func TestGapsMerge(t *testing.T) {
	s, q := listed(t, 1)
	s.Commit(Commit{Gap: &Gap{From: "2", To: "4", Reason: "expired"}, Changes: []Change{put("a", "a1", "4")}, Version: "4"})
	s.Commit(Commit{Changes: []Change{put("a", "a1", "5")}, Version: "5"})
	if got, want := drain(t, q), "!expired, slow consumer 2-5 ~a/a1 1>5 =5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClose(t *testing.T) {
	s, q := listed(t, 1<<20)
	done := make(chan error)
	go func() {
		_, err := q.Next(context.Background())
		done <- err
	}()
	q.Close()
	q.Close() // twice is harmless
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("Next: %v", err)
	}
	before, version := s.Stat()
	s.Close()
	s.Commit(Commit{Changes: []Change{put("a", "a1", "9"), put("new", "n1", "9")}, Version: "9"})
	s.Begin(true, s.Epoch()+1)
	s.Commit(Commit{Version: "10", Sweep: true})
	if n, v := s.Stat(); before == 0 || n != before || v != version || s.Get(Key{Name: "new"}) != nil {
		t.Errorf("a closed store went from %d objects at %s to %d at %s", before, version, n, v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewQueue(1, QueueOptions{Budget: 1}).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context: %v", err)
	}
}

// TestIdleQueueKeepsNoVersions: a consumer took a small batch and a large one.
func TestIdleQueueKeepsNoVersions(t *testing.T) {
	for _, n := range []int{2, 2 * maxFew} {
		s, q := New(0), NewQueue(1, QueueOptions{Latest: true})
		s.Subscribe(q, time.Time{})
		var changes []Change
		for i := range n {
			changes = append(changes, put(strconv.Itoa(i), "u", "1"))
		}
		s.Commit(Commit{Changes: changes})
		b, _, _ := q.take()
		if len(b.Deltas) != n {
			t.Fatalf("%d deltas, want %d", len(b.Deltas), n)
		}
		if got := drain(t, q); got != "" {
			t.Fatalf("more to take: %s", got)
		}
		for _, d := range b.Deltas {
			if d.New != nil {
				t.Fatalf("%d deltas: their slice still has %s", n, describe(&d))
			}
		}
		if q.page.many != nil {
			t.Errorf("%d deltas: an idle queue keeps its borrowed slice", n)
		}
	}
}

func TestUnsubscribe(t *testing.T) {
	s, q := listed(t, 1<<20)
	other := NewQueue(1, QueueOptions{Budget: 1 << 20})
	s.Subscribe(other, time.Time{})
	s.Unsubscribe(q)
	s.Unsubscribe(q) // twice is harmless
	s.Commit(Commit{Changes: []Change{put("a", "a1", "5")}, Version: "5"})
	if got := drain(t, q); got != "" {
		t.Errorf("a queue that left got %q", got)
	}
	if got, want := drain(t, other), "+a/a1 >1i +b/b1 >2i =2 | ~a/a1 1>5 =5"; got != want {
		t.Errorf("one that stays got %q, want %q", got, want)
	}
}

func TestStreamsTakeTurns(t *testing.T) {
	a, b := New(0), New(1)
	q := NewQueue(2, QueueOptions{Latest: true})
	q.max = 1
	for _, s := range []*Store{a, b} {
		s.Subscribe(q, time.Time{})
		s.Begin(false, 0)
		s.Commit(Commit{Version: "1", Sweep: true, Changes: []Change{put("a", "a1", "1"), put("b", "b1", "1")}})
	}
	var streams []int
	for {
		batch, ok, _ := q.take()
		if !ok {
			break
		}
		streams = append(streams, batch.Stream)
	}
	if fmt.Sprint(streams) != "[0 1 0 1]" {
		t.Errorf("streams %v", streams)
	}
}

// TestFinish: a finished queue delivers its contents and then ends.
func TestFinish(t *testing.T) {
	for _, o := range []QueueOptions{{Latest: true}, {Budget: 1}, {Budget: 1 << 20}} {
		s, _ := listed(t, 1<<20)
		q, idle := NewQueue(1, o), NewQueue(1, o)
		s.Subscribe(q, time.Time{})
		q.Finish()
		s.Commit(Commit{Changes: []Change{put("a", "a1", "5")}, Version: "5"})
		b, err := q.Next(context.Background())
		if got, want := text(b), "+a/a1 >1i +b/b1 >2i =2"; err != nil || got != want {
			t.Errorf("%+v: got %q (%v), want %q", o, got, err, want)
		}
		for range 2 {
			if _, err := q.Next(context.Background()); !errors.Is(err, ErrClosed) {
				t.Errorf("%+v: %v after the end", o, err)
			}
		}
		done := make(chan error)
		go func() {
			_, err := idle.Next(context.Background())
			done <- err
		}()
		idle.Finish() // wakes the waiting consumer
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("%+v: %v", o, err)
		}
		s.Subscribe(idle, time.Time{})
		idle.Close()
		idle.Finish()
		if l := idle.Lag(); l != (Lag{}) {
			t.Errorf("%+v: a closed queue was filled: %+v", o, l)
		}
	}
}
