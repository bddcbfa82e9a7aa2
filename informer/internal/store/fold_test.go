package store

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// TestFold: several changes that were not taken in between are folded: after a gap if the budget was exceeded,
// without one in mode Latest. The consumer knows a1 at 1 and b1 at 2.
func TestFold(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []Change
		gap     string
		want    string
	}{
		{"updates become one", []Change{put("a", "a1", "5"), put("a", "a1", "6"), put("a", "a1", "7")},
			"!slow consumer 2-7 ", "~a/a1 1>7 =7"},
		{"one change each loses nothing", []Change{put("a", "a1", "5"), put("b", "b1", "6")}, "", "~a/a1 1>5 ~b/b1 2>6 =6"},
		{"the place is that of the first change", []Change{put("b", "b1", "5"), put("a", "a1", "6"), put("b", "b1", "7")},
			"!slow consumer 2-7 ", "~b/b1 2>7 ~a/a1 1>6 =7"},
		{"an unseen object that came and went", []Change{put("c", "c1", "5"), del("c", "c1", "6")}, "!slow consumer 2-6 ", "=6"},
		{"one that comes back is another one: its place is that of its own first change",
			[]Change{put("c", "c1", "5"), put("a", "a1", "6"), del("c", "c1", "7"), put("c", "c2", "8")},
			"!slow consumer 2-8 ", "~a/a1 1>6 +c/c2 >8 =8"},
		{"update and delete", []Change{put("a", "a1", "5"), del("a", "a1", "6")}, "!slow consumer 2-6 ", "-a/a1 1> =6"},
		{"recreated: both are delivered, nothing is lost", []Change{del("a", "a1", "5"), put("a", "a2", "6")}, "", "-a/a1 1> +a/a2 >6 =6"},
		{"recreated and updated", []Change{del("a", "a1", "5"), put("a", "a2", "6"), put("a", "a2", "7")},
			"!slow consumer 2-7 ", "-a/a1 1> +a/a2 >7 =7"},
		{"recreated twice", []Change{put("a", "a2", "5"), put("a", "a3", "6")}, "!slow consumer 2-6 ", "-a/a1 1> +a/a3 >6 =6"},
		{"recreated and gone", []Change{put("a", "a2", "5"), del("a", "a2", "6")}, "!slow consumer 2-6 ", "-a/a1 1> =6"},
		{"left and entered again, unchanged", []Change{del("a", "a1", "5"), put("a", "a1", "1")}, "!slow consumer 2-5 ", "=5"},
		{"left and entered again, changed", []Change{del("a", "a1", "5"), put("a", "a1", "6")}, "!slow consumer 2-6 ", "~a/a1 1>6 =6"},
	} {
		for _, o := range []QueueOptions{{Latest: true}, {Budget: 1}} { // one byte: everything folds
			t.Run(fmt.Sprintf("%s %+v", c.name, o), func(t *testing.T) {
				s, _ := listed(t, 1<<20)
				q := NewQueue(1, o)
				s.Subscribe(q, time.Time{})
				drain(t, q)
				for _, change := range c.changes {
					s.Commit(Commit{Changes: []Change{change}, Version: change.rv()})
				}
				want := c.want
				if !o.Latest {
					want = c.gap + want
				}
				if got := drain(t, q); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestLastWord: a fold keeps the server's final version of a deletion, for that object only.
func TestLastWord(t *testing.T) {
	s, _ := listed(t, 1<<20)
	q := NewQueue(1, QueueOptions{Latest: true})
	s.Subscribe(q, time.Time{})
	drain(t, q)
	gone, other := del("a", "a1", "5"), del("a", "a2", "7")
	s.Commit(Commit{Changes: []Change{gone, put("a", "a2", "6"), other, put("a", "a3", "8")}})
	b, _, _ := q.take()
	if len(b.Deltas) != 2 || b.Deltas[0].Final != gone.V || b.Deltas[1].Final != nil {
		t.Errorf("got %s, final %v", text(b), b.Deltas[0].Final)
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
