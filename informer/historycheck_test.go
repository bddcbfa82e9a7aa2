package informer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestHistoryOvertaken restores a backup while the stream is disconnected, until the server's version has caught up with
// ours.
func TestHistoryOvertaken(t *testing.T) {
	for _, tc := range []struct {
		why        string
		lost, then func(*informertest.Server)
		want       string // without lines for the size of batches; empty: undetected
	}{
		{"a known object is older there", func(s *informertest.Server) {
			s.Put(widgets, "n", "a", spec("lost")) // 1003
		}, func(s *informertest.Server) {
			s.Put(widgets, "n", "b", spec("other")) // also 1003
			s.Put(widgets, "n", "b", spec("more"))
		}, "! history-changed 1003..1004\n~ b 1002>1004 relisted\n~ a 1003>1001 relisted"},
		{"a known object never existed there", func(s *informertest.Server) {
			s.Put(widgets, "n", "c", spec("lost")) // 1003
		}, func(s *informertest.Server) {
			s.Put(widgets, "n", "b", spec("other"))
			s.Put(widgets, "n", "b", spec("more"))
		}, "~ b 1002>1004\n! history-changed 1004..1004\n- c 1003 relisted"},
		{"it was recreated there", func(s *informertest.Server) {
			s.Put(widgets, "n", "c", spec("lost"))
		}, func(s *informertest.Server) {
			s.Put(widgets, "n", "c", spec("other")) // 1003 again, with another UID
			s.Put(widgets, "n", "b", spec("more"))
		}, "! history-changed 1003..1004\n~ b 1002>1004 relisted\n- c 1003 relisted\n+ c 1003 relisted"},
		{"the newest was changed there, too, and another was not", func(s *informertest.Server) {
			s.Put(widgets, "n", "b", spec("lost")) // 1003
			s.Put(widgets, "n", "a", spec("lost")) // 1004
		}, func(s *informertest.Server) {
			s.Put(widgets, "n", "a", spec("other"))
			s.Put(widgets, "n", "a", spec("more"))
			s.Put(widgets, "n", "a", spec("again")) // 1005
		}, "! history-changed 1004..1005\n~ a 1004>1005 relisted\n~ b 1003>1002 relisted"},
	} {
		var backup informertest.Snapshot
		before := func(s *informertest.Server) {
			two(s)
			backup = s.Snapshot()
		}
		scenario(t, informer.SourceOptions{}, before, func(r *rig) {
			r.want("the first list", twoListed)
			tc.lost(r.server)
			r.pass(time.Second)
			r.feed.take()
			r.server.SetDown(true)
			r.server.Restore(backup)
			tc.then(r.server)
			r.server.SetDown(false)
			r.pass(10 * time.Second)
			r.server.Bookmark()
			r.pass(10 * time.Second)
			got, want := strings.Split(without(r.feed.take(), "="), "\n"), strings.Split(tc.want, "\n")
			slices.Sort(got) // a list has no order
			slices.Sort(want)
			if !slices.Equal(got, want) {
				r.Errorf("%s:\n%s\nwant\n%s", tc.why, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if st := r.source.Status()[0]; st.Epoch != 2 {
				r.Errorf("%s: epoch %d", tc.why, st.Epoch)
			}
		})
	}
}

// TestSameHistory: objects deleted or changed while the stream was disconnected are no sign of another history.
func TestSameHistory(t *testing.T) {
	for _, tc := range []struct {
		why   string
		happy func(*informertest.Server)
		want  string
	}{
		{"nothing happened", func(*informertest.Server) {}, ""},
		{"all are gone", func(s *informertest.Server) {
			s.Delete(widgets, "n", "a")
			s.Delete(widgets, "n", "b")
		}, "- a 1001 final 1003\n- b 1002 final 1004"},
		{"one was recreated", func(s *informertest.Server) {
			s.Delete(widgets, "n", "b")
			s.Put(widgets, "n", "b", spec(2))
		}, "- b 1002 final 1003\n+ b 1004"},
		{"all were changed", func(s *informertest.Server) {
			s.Put(widgets, "n", "b", spec(2))
			s.Put(widgets, "n", "a", spec(2))
		}, "~ b 1002>1003\n~ a 1001>1004"},
	} {
		scenario(t, informer.SourceOptions{}, two, func(r *rig) {
			r.want("the first list", twoListed)
			r.server.SetDown(true)
			tc.happy(r.server)
			r.server.SetDown(false)
			r.pass(10 * time.Second)
			r.server.Bookmark()
			r.pass(10 * time.Second)
			if got := without(r.feed.take(), "="); got != tc.want {
				r.Errorf("%s:\n%s\nwant\n%s", tc.why, got, tc.want)
			}
			if st := r.source.Status()[0]; st.Epoch != 1 || st.State != informer.Watching {
				r.Errorf("%s: %s in epoch %d", tc.why, st.State, st.Epoch)
			}
		})
	}
}

// TestHistoryCheckForbidden: a stream that may not get single objects resumes without the history check.
func TestHistoryCheckForbidden(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		end := r.server.Misbehave(informertest.Fault{On: informertest.Gets, Resource: widgets, Effect: informertest.Reject, Code: 403})
		defer end()
		r.server.Cut()
		r.pass(10 * time.Second)
		r.server.Put(widgets, "n", "a", spec(2))
		r.want("it goes on", "~ a 1001>1003\n= 1003 epoch 1")
	})
}
