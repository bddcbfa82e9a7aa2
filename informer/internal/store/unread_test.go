package store

import (
	"testing"
	"time"
)

// TestReadAgain: an object's version could not be read from the watch, and an audit reads it.
func TestReadAgain(t *testing.T) {
	since := time.Unix(100, 0)
	again := func(name, uid, rv string) Commit {
		c := put(name, uid, rv)
		c.Reread = true
		return Commit{Changes: []Change{c}, At: time.Unix(200, 0)}
	}
	for _, tc := range []struct {
		why   string
		watch []Change
		again Commit
		want  string // the first batch after that
	}{
		{"a version that was not read", nil, again("a", "a1", "6"), "~a/a1 1>6r =6 6"},
		{"a newer one", nil, again("a", "a1", "7"), "~a/a1 1>7r =6 6"},
		{"one from before", nil, again("a", "a1", "1"), ""},
		{"a newer one came", []Change{put("a", "a1", "7")}, again("a", "a1", "6"), ""},
		{"it was deleted", []Change{del("a", "a1", "7")}, again("a", "a1", "6"), ""},
		{"and created again", []Change{del("a", "a1", "7"), put("a", "a2", "8")}, again("a", "a1", "6"), ""},
		{"one that was read", nil, again("b", "b1", "6"), ""},
		{"an unknown object", nil, again("c", "c1", "6"), ""},
	} {
		t.Run(tc.why, func(t *testing.T) {
			s := New(0)
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2")}, Version: "5", Sweep: true})
			s.Commit(Commit{Changes: []Change{{Key: Key{Name: "a"}, UID: "a1", RV: "6", Keep: true, Unread: true, Since: since}}, Version: "6"})
			if !s.Unread(Key{Name: "a"}) || len(s.AllUnread()) != 1 {
				t.Error("the store does not report the object as unread")
			}
			for _, c := range tc.watch {
				s.Commit(Commit{Changes: []Change{c}, Version: c.rv()})
			}
			q := NewQueue(1, QueueOptions{Budget: 1 << 20, SkipLoaded: true, SkipInitial: true})
			s.Subscribe(q, time.Time{})
			if _, err := q.Next(t.Context()); err != nil { // the stream's position
				t.Fatal(err)
			}
			s.Commit(tc.again)
			q.Finish()
			b, err := q.Next(t.Context())
			got := ""
			if err == nil {
				got = text(b) + " " + b.Version
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if err == nil && !b.Deltas[0].After.Equal(since) {
				t.Errorf("changed after %v, want %v", b.Deltas[0].After, since)
			}
			if got, want := s.Unread(Key{Name: "a"}), tc.watch == nil && tc.want == ""; got != want {
				t.Errorf("out of date: %t, want %t", got, want)
			}
		})
	}
}

// TestAfterUnread: the next change of an object after an unread version is a difference between two versions that may have
// others between them.
func TestAfterUnread(t *testing.T) {
	since, list := time.Unix(1000, 0), time.Unix(500, 0)
	s := New(0)
	s.Begin(false, 0)
	s.Commit(Commit{Changes: []Change{put("a", "a1", "1")}, Version: "5", Sweep: true, After: list})
	s.Commit(Commit{Changes: []Change{{Key: Key{Name: "a"}, UID: "a1", RV: "6", Keep: true, Unread: true, Since: since}}, Version: "6", After: list})
	q := NewQueue(1, QueueOptions{Budget: 1 << 20, SkipLoaded: true, SkipInitial: true})
	s.Subscribe(q, time.Time{})
	if _, err := q.Next(t.Context()); err != nil { // the stream's position
		t.Fatal(err)
	}
	for _, v := range []string{"7", "8"} {
		s.Commit(Commit{Changes: []Change{put("a", "a1", v)}, Version: v, After: list})
	}
	q.Finish()
	b, err := q.Next(t.Context())
	if err != nil || text(b) != "~a/a1 1>7r ~a/a1 7>8 =8" || !b.Deltas[0].After.Equal(since) || !b.Deltas[1].After.IsZero() {
		t.Errorf("got %s, %v, after %v", text(b), err, b.Deltas)
	}
}
