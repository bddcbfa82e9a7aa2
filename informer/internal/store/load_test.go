package store

import (
	"testing"
	"time"
)

// loaded returns a store that starts with a1 (version 1) and b1 (2) from an earlier run.
func loaded(trusted bool, queues ...*Queue) *Store {
	s := New(0)
	for _, q := range queues {
		s.Subscribe(q, time.Time{})
	}
	items := []Item{{Key{Name: "b"}, put("b", "b1", "0").V}}
	for _, c := range []Change{put("a", "a1", "1"), put("b", "b1", "2")} { // the last b counts
		items = append(items, Item{c.Key, c.V})
	}
	s.Load(items, Head{Epoch: 3, Phase: Live, Version: "2"}, trusted)
	return s
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name    string
		trusted bool
		next    func(*Store)
		want    string
	}{
		{"it is not live by itself", true, func(*Store) {}, "+a/a1 >1i +b/b1 >2i"},
		{"a watch goes on, and catches up", true, func(s *Store) {
			s.Commit(Commit{Changes: []Change{put("a", "a1", "5")}, Version: "5"})
			s.Commit(Commit{Changes: []Change{put("b", "b1", "1")}, Version: "6"}) // an older version
			s.Commit(Commit{Version: "7", Live: true})
			s.Commit(Commit{Version: "7", Live: true}) // repeated: no change
		}, "+a/a1 >1i +b/b1 >2i | ~a/a1 1>5 | =7"},
		{"a list finds nothing new", true, func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2")}, Version: "9", Sweep: true})
		}, "+a/a1 >1i +b/b1 >2i | =9"},
		{"a list finds another content at the same version", true, func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2", "!")}, Version: "9", Sweep: true})
		}, "+a/a1 >1i +b/b1 >2i | ~b/b1 2>2r =9"},
		{"a list finds what changed: none of it is initial", true, func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "4"), put("c", "c1", "5")}, Version: "9", Sweep: true})
		}, "+a/a1 >1i +b/b1 >2i | ~a/a1 1>4r +c/c1 >5r -b/b1 2>r =9"},
		{"what is not trusted is compared by content", false, func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2", "!")}, Version: "9", Sweep: true})
		}, "+a/a1 >1i +b/b1 >2i | ~b/b1 2>2r =9"},
		{"what a list that compares could not read is not seen to change, once", false, func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), {Key: Key{Name: "b"}, UID: "b1", Keep: true}}, Version: "9", Sweep: true})
			s.Commit(Commit{Changes: []Change{put("b", "b1", "10")}, Version: "10"})
			s.Commit(Commit{Changes: []Change{put("b", "b1", "11")}, Version: "11"})
		}, "+a/a1 >1i +b/b1 >2i | ~b/b1 2>10r ~b/b1 10>11 =11"},
		{"a list under way has to end as one", true, func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Version: "9", Live: true})
		}, "+a/a1 >1i +b/b1 >2i"},
	} {
		t.Run(c.name, func(t *testing.T) {
			early := NewQueue(1, QueueOptions{Budget: 1 << 20})
			s := loaded(c.trusted, early)
			late := NewQueue(1, QueueOptions{Budget: 1 << 20})
			s.Subscribe(late, time.Time{})
			c.next(s)
			for _, q := range []*Queue{early, late} {
				if got := drain(t, q); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestLoadedHead(t *testing.T) {
	s := loaded(true)
	if s.Epoch() != 3 || s.Version() != "2" || s.Synced() {
		t.Errorf("epoch %d, version %q, synced %t", s.Epoch(), s.Version(), s.Synced())
	}
	if a := put("a", "a1", "1"); !known(s, a) || known(loaded(false), a) {
		t.Error("versions must prove something only if the state is trusted")
	}
	s = New(0)
	s.Load(nil, Head{Phase: Listing, Version: "7"}, true)
	if s.Epoch() != 1 || s.Version() != "" {
		t.Errorf("a state that was not complete: epoch %d, version %q", s.Epoch(), s.Version())
	}
	s.Close()
	s.Load([]Item{{Key{Name: "a"}, put("a", "a1", "1").V}}, Head{}, true)
	if n, _ := s.Stat(); n != 0 {
		t.Error("a closed store was loaded")
	}
}
