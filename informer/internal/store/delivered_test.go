package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDelivered: the objects that a consumer has taken in the stored version, in every mode and at every position.
func TestTold(t *testing.T) {
	for _, o := range []QueueOptions{{Latest: true}, {Budget: 1 << 20}, {Budget: 1}} {
		s, _ := listed(t, 1<<20)
		q := NewQueue(1, o)
		s.Subscribe(q, time.Time{})
		want := func(why, want string) {
			t.Helper()
			var got []string
			for _, item := range s.Delivered(q) {
				got = append(got, item.Key.Name+item.V.RV())
			}
			slices.Sort(got)
			if got := strings.Join(got, " "); got != want {
				t.Errorf("%+v: %s: got %q, want %q", o, why, got, want)
			}
		}
		want("the state that it starts with is queued", "")
		q.max = 1
		if _, ok, err := q.take(); !ok || err != nil {
			t.Fatalf("nothing to take: %v", err)
		}
		want("it has the first object", "a1")
		drain(t, q)
		want("it has all", "a1 b2")
		s.Commit(Commit{Changes: []Change{put("a", "a1", "5"), put("c", "c1", "6")}, Version: "6"})
		want("a change and an addition are queued", "b2")
		drain(t, q)
		want("it has those, too", "a5 b2 c6")
		q.Close()
		want("over", "")
	}
}

// TestCloseWhileSorting: a queue is closed while its consumer sorts without the lock.
func TestCloseWhileSorting(t *testing.T) {
	s := New(0)
	s.Begin(false, 0)
	var all []Change
	for i := range 5000 {
		all = append(all, put(fmt.Sprint("o", i), "u", "1"))
	}
	s.Commit(Commit{Changes: all, Version: "900", Sweep: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 50 {
		q := NewQueue(1, QueueOptions{Latest: true})
		s.Subscribe(q, time.Time{})
		q.mu.Lock() // both wait for it, the consumer first
		done, closed := make(chan error), make(chan struct{})
		go func() {
			for {
				if _, err := q.Next(ctx); err != nil {
					done <- err
					return
				}
			}
		}()
		go func() {
			defer close(closed)
			q.Close()
		}()
		q.mu.Unlock()
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Fatalf("Next: %v", err)
		}
		<-closed
		s.Unsubscribe(q)
	}
}

// TestStrict: a queue that would have to fold ends instead, after its contents.
func TestStrict(t *testing.T) {
	s, _ := listed(t, 1<<20)
	q := NewQueue(1, QueueOptions{Strict: true, Budget: 2000})
	s.Subscribe(q, time.Time{})
	if got, want := drain(t, q), "+a/a1 >1i +b/b1 >2i =2"; got != want {
		t.Fatalf("it starts with %q, want %q", got, want)
	}
	for i := 3; i < 100; i++ {
		s.Commit(Commit{Changes: []Change{put("a", "a1", fmt.Sprint(i))}, Version: fmt.Sprint(i)})
	}
	delivered := 0
	for {
		b, err := q.Next(t.Context())
		if delivered += len(b.Deltas); err != nil {
			break
		}
	}
	if delivered == 0 || delivered > 10 {
		t.Errorf("before its end, it delivered %d of 97 versions", delivered)
	}
	for range 2 {
		if _, err := q.Next(t.Context()); !errors.Is(err, ErrBehind) {
			t.Errorf("Next: %v", err)
		}
	}
	if l := q.Lag(); l != (Lag{}) {
		t.Errorf("it holds nothing: %+v", l)
	}
}

// TestSkipLoaded: only a state that is loaded while the queue exists counts as known.
func TestSkipLoaded(t *testing.T) {
	early := NewQueue(1, QueueOptions{SkipLoaded: true, Budget: 1 << 20})
	s := loaded(true, early)
	late := NewQueue(1, QueueOptions{SkipLoaded: true, Budget: 1 << 20})
	s.Subscribe(late, time.Time{})
	s.Commit(Commit{Changes: []Change{put("a", "a1", "5")}, Version: "5"})
	s.Commit(Commit{Version: "7", Live: true})
	if got, want := strings.TrimPrefix(drain(t, early), " | "), "~a/a1 1>5 | =7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := drain(t, late), "+a/a1 >1i +b/b1 >2i | ~a/a1 1>5 | =7"; got != want {
		t.Errorf("a late one gets %q, want %q", got, want)
	}
}

// TestRemoveIndexClears: a removed index is empty and its slot free.
func TestRemoveIndexClears(t *testing.T) {
	s, _ := listed(t, 1<<20)
	ix := mirror{}
	slot := s.AddIndex(ix)
	s.Commit(Commit{Changes: []Change{put("a", "a1", "5")}, Version: "5"})
	if len(ix) != 1 {
		t.Fatalf("the index has %d objects", len(ix))
	}
	s.RemoveIndex(slot)
	s.RemoveIndex(slot) // twice is harmless
	if len(ix) != 0 {
		t.Errorf("a removed index has %d objects", len(ix))
	}
	if again := s.AddIndex(ix); again != slot {
		t.Errorf("slot %d is free, and the next index has %d", slot, again)
	}
}
