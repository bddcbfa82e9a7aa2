package informer_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// park removes the kind, which a stream accepts after a few seconds.
func (r *rig) park() {
	r.Helper()
	r.server.Unserve(widgets)
	r.pass(10 * time.Second)
	for _, st := range r.source.Status() {
		if st.State != informer.Parked {
			r.Fatalf("%v is not parked: %+v", st.Stream, st)
		}
	}
}

func TestRetryDeliversDifferences(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.park()
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Delete(widgets, "n", "b")
		r.server.Put(widgets, "n", "c", spec(1))
		r.server.Serve(widgets, "Widget")
		r.feed.feed.Retry("v1")
		r.want("net changes, after a gap", `
			! not served 1002..1005
			~ a 1001>1003 relisted
			+ c 1005 relisted
			- b 1002 relisted
			= 1005 epoch 1`)
		r.server.Put(widgets, "n", "a", spec(3))
		r.want("then it is watched again", "~ a 1003>1006\n= 1006 epoch 1")
		r.feed.feed.Retry("v1")
		r.feed.feed.Retire()
		r.want("a stream that is not parked is left alone", "")
	})
}

// TestComesBackByItself: a parked stream recovers without Retry.
func TestComesBackByItself(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.park()
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Serve(widgets, "Widget")
		r.pass(40 * time.Second)
		r.want("the differences, after a gap", "! not served 1002..1003\n~ a 1001>1003 relisted\n= 1003 epoch 1")
		r.server.Put(widgets, "n", "a", spec(3))
		r.want("then it is watched again", "~ a 1003>1004\n= 1004 epoch 1")
	})
}

// TestALoadBalancersNotFound: a load balancer's 404 is not the API server's.
func TestALoadBalancersNotFound(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return true
		})
		r.server.CloseWatches()
		r.pass(time.Minute)
		r.server.Intercept(nil)
		r.pass(40 * time.Second)
		r.server.Put(widgets, "n", "a", spec(2))
		r.want("it is not parked", "~ a 1001>1003\n= 1003 epoch 1")
	})
}

// TestOneLookAtATime: a stream that is retried in vain checks for its kind once at a time.
func TestOneLookAtATime(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.park()
		for range 5 {
			r.feed.feed.Retry("v1")
			r.pass(10 * time.Second)
		}
		before := len(r.server.Requests())
		r.pass(10 * time.Minute)
		if n := len(r.server.Requests()) - before; n < 3 || n > 5 {
			r.Errorf("%d looks within ten minutes", n)
		}
	})
}

func TestRetryInVain(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.park()
		r.states.take()
		for range 3 {
			r.feed.feed.Retry("v1")
			r.pass(10 * time.Second)
		}
		r.want("no changes while it is not served", "")
		if got, once := r.states.take(), "listing waiting/1 parked/1"; got != strings.Join([]string{once, once, once}, " ") {
			r.Errorf("states: %s", got)
		}
		r.server.Serve(widgets, "Widget")
		r.feed.feed.Retry("v1")
		r.want("one gap for all of it", "! not served 1002..1002\n= 1002 epoch 1")
	})
}

func TestRetryUnderAnotherVersion(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Move(widgets, "v2")
		r.pass(10 * time.Second)
		v2 := widgets.GroupResource().WithVersion("v2")
		r.server.Put(v2, "n", "b", spec(2))
		r.feed.feed.Retry("v2")
		r.want("objects that did not change are the same ones", `
			! not served 1002..1003
			~ b 1002>1003 relisted
			= 1003 epoch 1`)
		if st := r.source.Status()[0]; st.Stream.Resource != widgets || st.State != informer.Watching {
			r.Errorf("status: %+v", st)
		}
	})
}

func TestRetryBeforeTheFirstSync(t *testing.T) {
	before := func(s *informertest.Server) { s.Unserve(widgets) }
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.park()
		r.feed.feed.Retire()
		r.want("there was nothing", "")
		r.server.Serve(widgets, "Widget")
		two(r.server)
		r.feed.feed.Retry("v1")
		r.want("its first list is one", twoListed)
		if err := r.source.Wait(r.Context()); err != nil {
			r.Errorf("Wait: %v", err)
		}
	})
}

func TestRetireDeliversMissedDeletionsOnce(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.park()
		r.feed.feed.Retire()
		r.want("the deletions that the watch did not live to send", `
			! not served 1002..1002
			- a 1001 relisted
			- b 1002 relisted
			= 1002 epoch 1`)
		r.feed.feed.Retire()
		r.want("once", "")
		if st := r.source.Status()[0]; st.Objects != 0 || st.State != informer.Parked {
			r.Errorf("status: %+v", st)
		}
		r.server.Serve(widgets, "Widget")
		r.feed.feed.Retry("v1")
		r.want("objects that come back are added, none of them initial, and nothing was missed of none", `
			+ a 1001 relisted
			+ b 1002 relisted
			= 1002 epoch 1`)
	})
}

// TestRetireAHalfList: a kind is removed between two pages of its first list.
func TestRetireAHalfList(t *testing.T) {
	before := func(s *informertest.Server) {
		for range 501 {
			s.Put(widgets, "n", "w"+s.Version(), nil)
		}
		gone := false
		s.Intercept(refuse(http.StatusNotFound, metav1.StatusReasonNotFound, nil, func(r *http.Request) bool {
			gone = gone || r.URL.Query().Has("continue")
			return gone
		}))
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.pass(10 * time.Second)
		if got := strings.Count(r.feed.take(), "+ w"); got != 500 {
			r.Fatalf("%d objects of the first page, want 500", got)
		}
		r.feed.feed.Retire()
		if got := r.feed.take(); strings.Count(got, "- w") != 500 || strings.Count(got, "!") != 1 {
			r.Errorf("the delivered objects are deleted: %s", got)
		}
		r.server.Intercept(nil)
		r.feed.feed.Retry("v1")
		if got := r.feed.take(); strings.Count(got, "+ w") != 501 {
			r.Errorf("delivered again: %s", got)
		}
	})
}

// TestParkedByMany: with concurrent Retry, Retire and Close, nothing is delivered twice and no goroutine leaks
// (TestMain).
func TestParkedByMany(t *testing.T) {
	o := informer.SourceOptions{Selection: informer.Selection{Namespaces: []string{"m", "n"}}}
	scenario(t, o, two, func(r *rig) {
		r.feed.take()
		r.park()
		var all sync.WaitGroup
		for range 4 {
			all.Go(r.feed.feed.Retire)
			all.Go(func() { r.feed.feed.Retry("v1") })
		}
		all.Wait()
		r.pass(10 * time.Second)
		got := r.feed.take()
		for _, name := range []string{"a", "b"} {
			if n := strings.Count(got, "- "+name); n > 1 {
				r.Errorf("%s is deleted %d times:\n%s", name, n, got)
			}
		}
		r.server.Serve(widgets, "Widget")
		for range 4 {
			all.Go(func() { r.feed.feed.Retry("v1") })
			all.Go(r.feed.feed.Retire)
		}
		all.Go(r.source.Close)
		all.Wait()
		synctest.Wait()
		r.feed.feed.Retry("v1")
		r.feed.feed.Retire()
		for _, st := range r.source.Status() {
			if st.State != informer.Parked && st.State != informer.Stopped {
				r.Errorf("a closed source goes on: %+v", st)
			}
		}
	})
}

// TestNotFoundForAWhile: the server, or a proxy, answers 404 for a kind that discovery lists. Nothing is lost: the
// stream retries.
func TestNotFoundForAWhile(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, "/widgets") {
				return false
			}
			informertest.Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such path")
			return true
		})
		r.server.CloseWatches()
		r.pass(time.Minute)
		if st := r.source.Status()[0]; st.State != informer.Waiting || !st.Synced {
			r.Errorf("it is not waiting: %+v", st)
		}
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Intercept(nil)
		r.pass(5 * time.Minute)
		r.want("no list", "~ a 1001>1003\n= 1003 epoch 1")
	})
}

// TestRetryOfAWatchingStream: a version is taken only by a list, after a gap; so a stream that is not parked keeps its own.
func TestRetryOfAWatchingStream(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.feed.feed.Retry("v2")
		asked := len(r.server.Requests())
		r.server.CloseWatches()
		r.pass(10 * time.Second)
		r.server.Put(widgets, "n", "a", spec(2))
		r.want("it is watched on", "~ a 1001>1003\n= 1003 epoch 1")
		for _, path := range r.server.Requests()[asked:] {
			if strings.Contains(path, "/v2/") {
				t.Errorf("asked %s", path)
			}
		}
	})
}
