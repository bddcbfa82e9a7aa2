package informer_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// updated writes an object of n and returns its watch frame.
func updated(t *testing.T, s *informertest.Server, name string, v any) string {
	t.Helper()
	s.Put(widgets, "n", name, spec(v))
	return frame(t, s, widgets, "n/"+name, false)
}

// removed deletes one.
func removed(t *testing.T, s *informertest.Server, name string) string {
	t.Helper()
	was := frame(t, s, widgets, "n/"+name, false)
	meta, _ := s.Objects(widgets)["n/"+name]["metadata"].(map[string]any)
	is := strings.Replace(was, `"MODIFIED"`, `"DELETED"`, 1)
	return strings.Replace(is, fmt.Sprintf(`"resourceVersion":%q`, meta["resourceVersion"]), fmt.Sprintf(`"resourceVersion":%q`, s.Delete(widgets, "n", name)), 1)
}

// TestKilledWhileResuming: the changes received during a resumption count. A process killed during it resumes after
// them, without a list and without a gap.
func TestKilledWhileResuming(t *testing.T) {
	for _, tc := range []struct {
		why   string
		while func(*testing.T, *informertest.Server) string // between the first and second run; returns what the second delivers of it
		first string                                        // what the second delivers until it is killed
		then  string                                        // what the third delivers
	}{
		{"updates", func(t *testing.T, s *informertest.Server) string {
			heard := updated(t, s, "a", 2)
			updated(t, s, "b", 3)
			updated(t, s, "b", 4)
			return heard
		}, "~ a 1001>1003", "~ b 1002>1004\n~ b 1004>1005"},
		{"a deletion", func(t *testing.T, s *informertest.Server) string {
			heard := removed(t, s, "a")
			updated(t, s, "b", 4)
			return heard
		}, "- a 1001 final 1003", "~ b 1002>1004"},
		{"the newest object was deleted, and the deletion was delivered", func(t *testing.T, s *informertest.Server) string {
			heard := removed(t, s, "b")
			updated(t, s, "a", 4)
			return heard
		}, "- b 1002 final 1003", "~ a 1001>1004"},
		{"it was deleted, and the deletion was not delivered yet: the check is repeated", func(t *testing.T, s *informertest.Server) string {
			heard := updated(t, s, "a", 4)
			removed(t, s, "b")
			return heard
		}, "", "~ a 1001>1003\n- b 1002 final 1004"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
				k.firstRun(c)
				p := newScript()
				p.play(tc.while(t, server))
				server.Intercept(p.answer)
				s, f := k.keep(c, feed.Options{Strict: true})
				end := k.follow(f)
				<-time.After(time.Second)
				synctest.Wait()
				if st := s.Status()[0]; st.Synced || !st.Loaded {
					t.Errorf("the resumption is over: %+v", st)
				}
				s.Close()
				if got := without(end(), "="); got != tc.first {
					t.Errorf("until it was killed: %s", got)
				}
				close(p.over)
				before := len(server.Requests())
				s, f = k.keep(c, feed.Options{Strict: true})
				end = k.follow(f)
				if err := s.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				s.Close()
				if got := without(end(), "="); got != tc.then {
					t.Errorf("afterwards: %s, want %s", got, tc.then)
				}
				for _, asked := range server.Requests()[before:] {
					if strings.Contains(asked, "/widgets?") && !strings.Contains(asked, "watch=") && !strings.Contains(asked, "limit=1&") && !strings.HasSuffix(asked, "limit=1") {
						t.Errorf("it was listed: %s", asked)
					}
				}
			})
		})
	}
}

// TestAnotherHistoryAfterAKill: changes of another history do not reach a consumer before the history check is complete,
// so that the check is repeated after a kill.
func TestAnotherHistoryAfterAKill(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		old := server.Snapshot()
		server.Put(widgets, "n", "late", spec(1))
		s, f := k.keep(c, feed.Options{})
		end := k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close()
		if got := end(); !strings.Contains(got, "+ late 1003") {
			t.Errorf("the first run: %s", got)
		}
		server.Restore(old) // late never existed
		server.Skip(100)
		p := newScript()
		p.play(updated(t, server, "a", 2))
		updated(t, server, "b", 2)
		server.Intercept(p.answer)
		s, f = k.keep(c, feed.Options{})
		end = k.follow(f)
		<-time.After(time.Second)
		synctest.Wait()
		s.Close()
		end()
		close(p.over)
		s, f = k.keep(c, feed.Options{})
		end = k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := s.Status()[0].Objects; n != 2 {
			t.Errorf("%d objects, the server has 2", n)
		}
		s.Close()
		if got := end(); !strings.Contains(got, "! history-changed") || !strings.Contains(got, "- late 1003") || !strings.Contains(got, "epoch 2") {
			t.Errorf("reported: %s", got)
		}
	})
}

// TestDeletedWhileVerifying: an object that is deleted between the probe and the history check is not a sign of another
// history.
func TestDeletedWhileVerifying(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		var once sync.Once
		server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/widgets/b") {
				once.Do(func() { server.Delete(widgets, "n", "b") })
			}
			return false
		})
		s, f := k.keep(c, feed.Options{})
		end := k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close()
		if got := end(); got != "- b 1002 final 1003\n= 1003 epoch 1" {
			t.Errorf("reported: %s", got)
		}
	})
}

// TestFoundAfterAll: the newest object was missing when the state was first verified, but is found at the second time:
// nothing is held back any longer.
func TestFoundAfterAll(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		asked, refused := 0, false
		server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.HasSuffix(r.URL.Path, "/widgets/b"):
				if asked++; asked == 1 {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"b","group":"example.com","kind":"widgets"}}`)
					return true
				}
			case asked == 1 && !refused && r.URL.Query().Get("limit") == "1":
				refused = true
				http.Error(w, "no", http.StatusServiceUnavailable)
				return true
			}
			return false
		})
		s, f := k.keep(c, feed.Options{})
		end := k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		server.Put(widgets, "n", "a", spec(2))
		<-time.After(time.Minute)
		synctest.Wait()
		if asked != 2 {
			t.Errorf("it was asked for %d times", asked)
		}
		s.Close()
		if got := end(); !strings.Contains(got, "~ a 1001>1003\n= 1003 epoch 1") {
			t.Errorf("reported: %q", got)
		}
	})
}

// TestGapAmongHeldChanges: a gap among held changes keeps its place.
func TestGapAmongHeldChanges(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		p := newScript()
		p.play(updated(t, server, "a", 1) + updated(t, server, "a", "bad") + updated(t, server, "a", 2) + removed(t, server, "b"))
		server.Intercept(p.answer)
		defer close(p.over)
		s, f := k.keep(c, feed.Options{SourceOptions: informer.SourceOptions{Transform: rejects("bad")}})
		end := k.follow(f)
		<-time.After(time.Second)
		synctest.Wait()
		s.Close()
		if got, want := without(end(), "="), "~ a 1001>1003\n! transform 1003..1004\n~ a 1003>1005\n- b 1002 final 1006"; got != want {
			t.Errorf("reported: %s\nwant: %s", got, want)
		}
	})
}

// TestMuchIsHeldBack: changes beyond the budget are delivered without a version; the deletion that completes the history
// check restores the version.
func TestMuchIsHeldBack(t *testing.T) {
	defer informer.SetMaxHeld(4 << 10)()
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		before := maps.Clone(k.objects)
		var frames strings.Builder
		for i := range 36 {
			frames.WriteString(updated(t, server, "a", i))
		}
		gone := removed(t, server, "b")
		last := updated(t, server, "a", 1)
		p := newScript()
		p.play(frames.String())
		server.Intercept(p.answer)
		run := func() string {
			s, f := k.keep(c, feed.Options{})
			end := k.follow(f)
			<-time.After(time.Second)
			synctest.Wait()
			s.Close()
			return end()
		}
		if got := run(); strings.Count(got, "~ a ") != 36 || strings.Contains(got, "=") {
			t.Errorf("before the deletion: %s", got)
		}
		if k.version != "" {
			t.Errorf("kept with version %s", k.version)
		}
		k.objects, k.version, k.epoch = before, "1002", 1
		p.frames = frames.String() + gone + last
		if got := run(); strings.Count(got, "~ a ") != 37 || strings.Contains(got, "!") {
			t.Errorf("with it: %s", got)
		}
		if want := server.Version(); k.version != want {
			t.Errorf("kept with version %q, want %s", k.version, want)
		}
		close(p.over)
	})
}
