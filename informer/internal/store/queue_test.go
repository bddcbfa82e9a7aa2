package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFold(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []Change
		want    string
	}{
		{"updates become one, with a gap", []Change{put("a", "a1", "5"), put("a", "a1", "6"), put("a", "a1", "7")},
			"!slow consumer 2-7 ~a/a1 1>7 =7"},
		{"one change each loses nothing", []Change{put("a", "a1", "5"), put("b", "b1", "6")}, "~a/a1 1>5 ~b/b1 2>6 =6"},
		{"the place is that of the first change", []Change{put("b", "b1", "5"), put("a", "a1", "6"), put("b", "b1", "7")},
			"!slow consumer 2-7 ~b/b1 2>7 ~a/a1 1>6 =7"},
		{"an unseen object that came and went", []Change{put("c", "c1", "5"), del("c", "c1", "6")}, "!slow consumer 2-6 =6"},
		{"update and delete", []Change{put("a", "a1", "5"), del("a", "a1", "6")}, "!slow consumer 2-6 -a/a1 1> =6"},
		{"recreated: both are told, nothing is lost", []Change{del("a", "a1", "5"), put("a", "a2", "6")}, "-a/a1 1> +a/a2 >6 =6"},
		{"recreated and updated", []Change{del("a", "a1", "5"), put("a", "a2", "6"), put("a", "a2", "7")},
			"!slow consumer 2-7 -a/a1 1> +a/a2 >7 =7"},
		{"recreated twice", []Change{put("a", "a2", "5"), put("a", "a3", "6")}, "!slow consumer 2-6 -a/a1 1> +a/a3 >6 =6"},
		{"recreated and gone", []Change{put("a", "a2", "5"), del("a", "a2", "6")}, "!slow consumer 2-6 -a/a1 1> =6"},
		{"left and entered again, unchanged", []Change{del("a", "a1", "5"), put("a", "a1", "1")}, "!slow consumer 2-5 =5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, q := listed(t, 1) // one byte: everything folds
			for _, change := range c.changes {
				s.Commit(Commit{Changes: []Change{change}, Version: change.rv()})
			}
			if got := drain(t, q); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOverflowAndBack(t *testing.T) {
	s, q := listed(t, 8*perDelta)
	for rv := 3; rv < 20; rv++ {
		s.Commit(Commit{Changes: []Change{put("a", "a1", strconv.Itoa(rv))}, Version: strconv.Itoa(rv)})
	}
	if got, want := drain(t, q), "!slow consumer 2-19 ~a/a1 1>19 =19"; got != want {
		t.Errorf("after the overflow: %q, want %q", got, want)
	}
	s.Commit(Commit{Changes: []Change{put("a", "a1", "20")}, Version: "20"})
	s.Commit(Commit{Changes: []Change{put("a", "a1", "21")}, Version: "21"})
	if got, want := drain(t, q), "~a/a1 19>20 ~a/a1 20>21 =21"; got != want {
		t.Errorf("caught up: %q, want every version again: %q", got, want)
	}
	if q.bytes != 0 {
		t.Errorf("an empty queue counts %d bytes", q.bytes)
	}
}

func TestFoldIsBoundedByObjects(t *testing.T) {
	s, q := listed(t, 1)
	for i := range 1000 {
		rv := strconv.Itoa(10 + 2*i)
		s.Commit(Commit{Changes: []Change{put("short"+rv, "u"+rv, rv)}, Version: rv})
		rv = strconv.Itoa(11 + 2*i)
		s.Commit(Commit{Changes: []Change{del("short"+strconv.Itoa(10+2*i), "u"+strconv.Itoa(10+2*i), rv)}, Version: rv})
	}
	if n := q.folds[0].nodes.used; n != 0 {
		t.Errorf("%d nodes for objects that are gone and were never seen", n)
	}
}

func TestFoldIsTakenInPieces(t *testing.T) {
	s, q := New(0), NewQueue(1, QueueOptions{Budget: 1})
	s.Begin(false)
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

func TestQueuesDoNotShareBatches(t *testing.T) {
	s, q := listed(t, 1<<20)
	other := NewQueue(1, QueueOptions{Budget: 1 << 20})
	s.Subscribe(other, time.Time{})
	drain(t, other)
	s.Commit(Commit{Changes: []Change{put("a", "a1", "5")}, Version: "5"})
	drain(t, other) // from here on, the queues put together different batches
	s.Commit(Commit{Changes: []Change{put("a", "a1", "6")}, Version: "6"})
	s.Commit(Commit{Changes: []Change{put("a", "a1", "7")}, Version: "7"})
	if got, want := drain(t, other), "~a/a1 5>6 ~a/a1 6>7 =7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := drain(t, q), "~a/a1 1>5 ~a/a1 5>6 ~a/a1 6>7 =7"; got != want {
		t.Errorf("got %q, want %q", got, want)
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
	s.Close()
	s.Commit(Commit{Changes: []Change{put("a", "a1", "9")}, Version: "9"})
	if n, _ := s.Stat(); n != 0 {
		t.Errorf("%d objects in a closed store", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewQueue(1, QueueOptions{Budget: 1}).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context: %v", err)
	}
}
