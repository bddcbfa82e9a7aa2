package store

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestInitial: a queue in mode Latest joins when there are a1 at 1 and b1 at 2, and has taken a1 when the changes
// happen.
func TestInitial(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []Change
		want    string
	}{
		{"what was not taken moves on", []Change{put("b", "b1", "5"), put("b", "b1", "6")}, "+b/b1 >6i =6"},
		{"an object that is gone meanwhile is not delivered", []Change{del("b", "b1", "5")}, "=5"},
		{"what was replaced meanwhile is not initial", []Change{del("b", "b1", "5"), put("b", "b2", "6")}, "+b/b2 >6 =6"},
		{"nor is what left and entered again", []Change{del("b", "b1", "5"), put("b", "b1", "6")}, "+b/b1 >6 =6"},
		{"what was taken changes behind it", []Change{put("a", "a1", "5"), put("b", "b1", "6")}, "+b/b1 >6i | ~a/a1 1>5 =6"},
		{"what was added comes behind it, wherever its key is", []Change{put("aa", "aa", "5"), put("c", "c", "6")},
			"+b/b1 >2i | +aa/aa >5 | +c/c >6 =6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := listed(t, 1<<20)
			q := NewQueue(1, QueueOptions{Latest: true})
			q.max = 1
			s.Subscribe(q, time.Time{})
			if b, _, _ := q.take(); text(b) != "+a/a1 >1i" {
				t.Fatalf("first: %q", text(b))
			}
			for _, change := range c.changes {
				s.Commit(Commit{Changes: []Change{change}, Version: change.rv()})
			}
			if got := drain(t, q); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestInitialLag: the lag counts the versions that only a late consumer's initial state keeps.
func TestInitialLag(t *testing.T) {
	s, _ := listed(t, 1<<20)
	q := NewQueue(1, QueueOptions{Latest: true})
	s.Subscribe(q, time.Unix(7, 0))
	want := Lag{Objects: 2, Bytes: 2 * perInitial, Oldest: time.Unix(7, 0)}
	if got := q.Lag(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want.Bytes += perNode + int64(s.Get(Key{Name: "b"}).Size())
	for _, rv := range []string{"5", "6"} {
		s.Commit(Commit{Changes: []Change{put("b", "b1", rv)}, Version: rv})
		if got := q.Lag(); got != want {
			t.Errorf("at %s: got %+v, want %+v", rv, got, want)
		}
	}
}

// TestInitialThenEvery: a queue that joins late and keeps within its budget gets the initial state, then every
// version since.
func TestInitialThenEvery(t *testing.T) {
	s, _ := listed(t, 1<<20)
	q := NewQueue(1, QueueOptions{Budget: 1 << 20})
	s.Subscribe(q, time.Time{})
	for _, c := range []Change{put("a", "a1", "5"), put("a", "a1", "6"), del("b", "b1", "7")} {
		s.Commit(Commit{Changes: []Change{c}, Version: c.rv()})
	}
	if l := q.Lag(); l.Objects != 5 {
		t.Errorf("lag of %d, want 2 objects and 3 versions", l.Objects)
	}
	if got, want := drain(t, q), "+a/a1 >1i +b/b1 >2i =2 | ~a/a1 1>5 ~a/a1 5>6 -b/b1 2> =7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSkipInitial starts a consumer as if it knew the state: a late one, the state when it joins; an early one, the
// state after the first list.
func TestSkipInitial(t *testing.T) {
	for _, o := range []QueueOptions{{Latest: true, SkipInitial: true}, {Budget: 1 << 20, SkipInitial: true}} {
		s, early, late := New(0), NewQueue(1, o), NewQueue(1, o)
		s.Subscribe(early, time.Time{})
		s.Begin(false, 0)
		s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2"), put("c", "c1", "3")}})
		s.Subscribe(late, time.Time{})
		s.Commit(Commit{Changes: []Change{put("a", "a1", "4"), del("b", "b1", "5")}})
		for _, q := range []*Queue{early, late} {
			if got := drain(t, q); got != "" {
				t.Errorf("%+v: %q before the list is complete", o, got)
			}
		}
		s.Commit(Commit{Version: "6", Sweep: true})
		for _, c := range []Change{put("a", "a1", "7"), del("c", "c1", "8"), put("b", "b1", "9")} {
			s.Commit(Commit{Changes: []Change{c}, Version: c.rv()})
		}
		for _, q := range []*Queue{early, late} {
			got := strings.ReplaceAll(drain(t, q), "=6 | ", "")
			if want := "~a/a1 4>7 -c/c1 3> +b/b1 >9 =9"; got != want {
				t.Errorf("%+v: got %q, want %q", o, got, want)
			}
		}
	}
}

// TestSynced: a consumer that is never idle learns that it has its initial state.
func TestSynced(t *testing.T) {
	s, _ := listed(t, 1<<20)
	q := NewQueue(1, QueueOptions{Latest: true})
	q.max = 1
	s.Subscribe(q, time.Time{})
	rv := 10
	for i, want := range []bool{false, true, true} {
		rv++
		s.Commit(Commit{Changes: []Change{put("a", "a1", strconv.Itoa(rv)), put("z"+strconv.Itoa(rv), "z", strconv.Itoa(rv))}})
		if b, _, _ := q.take(); b.Synced != want || b.Phase == Live {
			t.Errorf("batch %d: synced %t, want %t: %s", i, b.Synced, want, text(b))
		}
	}
}
