package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// stands describes each batch of a queue: its phase and version, and whether the consumer is synced. A queue may
// combine batches without a gap.
func stands(t *testing.T, q *Queue) string {
	t.Helper()
	var text []string
	q.Finish()
	for {
		b, err := q.Next(t.Context())
		if errors.Is(err, ErrClosed) {
			return strings.Join(text, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s%s", [...]string{Listing: "listing", Live: "live", Resuming: "resuming"}[b.Phase], b.Version)
		if b.Synced {
			line += "+"
		}
		text = append(text, line)
	}
}

// TestResumable: only some batches have a version to resume from.
func TestResumable(t *testing.T) {
	unread := Change{Key: Key{Name: "a"}, UID: "a1", Keep: true, Unread: true}
	nameless := Change{Keep: true, Unread: true}
	commit := func(s *Store, version string, changes ...Change) {
		s.Commit(Commit{Changes: changes, Version: version, Gap: &Gap{Reason: "a batch of its own"}})
	}
	live := func(s *Store) {
		s.Begin(false, 0)
		s.Commit(Commit{Changes: []Change{put("a", "a1", "1"), put("b", "b1", "2")}, Version: "5", Sweep: true})
	}
	for _, tc := range []struct {
		why  string
		next func(*Store)
		want string
	}{
		{"an unverified loaded state has none", func(s *Store) {
			commit(s, "6", put("a", "a1", "6"))
		}, "listing listing"},
		{"one that is verified has, and is not synced before it has caught up", func(s *Store) {
			s.Resume()
			commit(s, "6", put("a", "a1", "6"))
			s.Commit(Commit{Version: "7"})
			s.Commit(Commit{Version: "7", Live: true})
		}, "listing resuming7 live7+"},
		{"a list on the way has none", func(s *Store) {
			s.Resume()
			commit(s, "6", put("a", "a1", "6"))
			s.Begin(false, 0)
			commit(s, "7", put("a", "a1", "7"))
			s.Resume()
			commit(s, "8", put("a", "a1", "8"))
			s.Commit(Commit{Changes: []Change{put("b", "b1", "2")}, Version: "9", Sweep: true})
		}, "listing resuming6 listing listing live9+"},
		{"nothing resumes a state that is live", func(s *Store) {
			live(s)
			s.Resume()
			commit(s, "6", put("a", "a1", "6"))
		}, "listing live5+ live6+"},
		{"an object that is out of date", func(s *Store) {
			live(s)
			commit(s, "6", unread)
			commit(s, "7", put("b", "b1", "7"))
			commit(s, "8", put("a", "a1", "8"))
		}, "listing live5+ live+ live+ live8+"},
		{"is not any more once it is gone", func(s *Store) {
			live(s)
			commit(s, "6", unread)
			commit(s, "7", Change{Key: Key{Name: "a"}, UID: "a1", RV: "7", Delete: true})
		}, "listing live5+ live+ live7+"},
		{"or delivered again as it is stored", func(s *Store) {
			live(s)
			commit(s, "6", unread)
			commit(s, "7", put("a", "a1", "1"))
		}, "listing live5+ live+ live7+"},
		{"nor in another form, which an audit has read before", func(s *Store) {
			live(s)
			commit(s, "6", unread)
			reread := put("a", "a1", "1", "in another form")
			reread.Reread = true
			commit(s, "", reread)
		}, "listing live5+ live+ live+"},
		{"nor in the same form", func(s *Store) {
			live(s)
			commit(s, "6", unread)
			reread := put("a", "a1", "1")
			reread.Reread = true
			commit(s, "", reread)
		}, "listing live5+ live+ live+"},
		{"an older version changes nothing", func(s *Store) {
			live(s)
			commit(s, "6", put("a", "a1", "6"))
			commit(s, "7", unread)
			commit(s, "8", put("a", "a1", "5"))
		}, "listing live5+ live6+ live+ live+"},
		{"an unseen object", func(s *Store) {
			live(s)
			c := unread
			c.Key.Name = "new"
			commit(s, "6", c)
			commit(s, "7", Change{Key: c.Key, UID: "a1", RV: "7", Delete: true})
		}, "listing live5+ live+ live7+"},
		{"another one under its name deletes what is stored", func(s *Store) {
			live(s)
			c := unread
			c.UID = "a2"
			commit(s, "6", c)
			commit(s, "7", put("a", "a2", "7"))
		}, "listing live5+ live+ live7+"},
		{"one that a list could not read", func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{unread, put("b", "b1", "2")}, Version: "5", Sweep: true})
			commit(s, "6", put("a", "a1", "6"))
		}, "listing live+ live6+"},
		{"one without a name, until the next list", func(s *Store) {
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{nameless, put("a", "a1", "1")}, Version: "5", Sweep: true})
			commit(s, "6", put("a", "a1", "6"))
			s.Begin(false, 0)
			s.Commit(Commit{Changes: []Change{put("a", "a1", "6")}, Version: "7", Sweep: true})
		}, "listing live+ live7+"},
		{"a streaming list that reads it the second time", func(s *Store) {
			s.Begin(false, 0)
			commit(s, "", unread)
			if !known(s, put("a", "a1", "1")) {
				t.Error("the version is not known")
			}
			s.Commit(Commit{Version: "5", Sweep: true})
		}, "listing listing live5+"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			every := NewQueue(1, QueueOptions{Budget: 1 << 20, SkipLoaded: true})
			s := loaded(true, every)
			tc.next(s)
			if got := stands(t, every); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			late := NewQueue(1, QueueOptions{Latest: true})
			s.Subscribe(late, time.Time{})
			last := tc.want[strings.LastIndex(tc.want, " ")+1:]
			if got := stands(t, late); got != last {
				t.Errorf("a late queue: %s, want %s", got, last)
			}
		})
	}
}
