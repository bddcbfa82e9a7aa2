package informer_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestWatchFromTheFuture: the history was replaced between a clean close and the next watch, which is accepted but
// delivers nothing.
func TestWatchFromTheFuture(t *testing.T) {
	var backup informertest.Snapshot
	before := func(s *informertest.Server) {
		s.Put(widgets, "n", "a", spec(1))
		backup = s.Snapshot()
		s.Put(widgets, "n", "b", spec(1))
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(func(_ http.ResponseWriter, q *http.Request) bool {
			if isWatch(q) {
				r.server.Intercept(nil)
				r.server.Restore(backup)
			}
			return false
		})
		r.server.CloseWatches()
		r.pass(time.Minute)
		r.want("nothing is delivered", "")
		r.pass(10 * time.Minute)
		r.want("a watch without a frame is followed by a probe", "! history-changed 1002..1001\n- b 1002 relisted\n= 1001 epoch 2")
	})
}

// TestServerThatIgnoresItsDeadline: the client's deadline ends a watch.
func TestServerThatIgnoresItsDeadline(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			if !isWatch(q) {
				return false
			}
			w.WriteHeader(http.StatusOK)
			r.server.Intercept(nil)
			<-q.Context().Done()
			return true
		})
		r.server.CloseWatches()
		r.server.Put(widgets, "n", "a", spec(2))
		r.pass(4 * time.Minute)
		r.want("nothing is delivered", "")
		r.pass(7 * time.Minute)
		r.want("another watch", "~ a 1001>1003\n= 1003 epoch 1")
		if got, want := r.states.take(), "listing watching"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
	})
}

// TestUnreadableItem: an unreadable item in a list does not delete its object.
func TestUnreadableItem(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Skip(5)
		r.server.SetDown(true)
		r.server.Compact()
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			if isWatch(q) || q.URL.Query().Get("limit") == "1" || !strings.HasSuffix(q.URL.Path, "/widgets") {
				return false
			}
			r.server.Intercept(nil)
			_, _ = io.WriteString(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1007"},"items":[
				{"metadata":{"namespace":"n","name":"b","uid":7}},{"metadata":{"labels":null}}]}`)
			return true
		})
		r.server.SetDown(false)
		r.pass(10 * time.Second)
		r.want("b stays, a is gone; the state cannot be resumed", "! expired, unreadable 1002..1007\n- a 1001 relisted\n=  epoch 1")
		if d := r.source.Status()[0].Dropped; d.Unreadable != 2 {
			r.Errorf("counted %+v", d)
		}
	})
}

// TestRelistThatBreaks: a list that ends early deletes nothing, and its gap is reported once.
func TestRelistThatBreaks(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.SetDown(true)
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Compact()
		var n atomic.Int32
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			if isWatch(q) || q.URL.Query().Get("limit") == "1" {
				return false
			}
			if n := n.Add(1); n > 2 {
				r.server.Intercept(nil)
				return false
			}
			_, _ = io.WriteString(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1003"},"items":[{"metadata":`)
			if n.Load() == 2 {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "garbage")
			return true
		})
		r.server.SetDown(false)
		r.pass(10 * time.Second)
		r.want("the third list", "! expired 1002..1003\n~ a 1001>1003 relisted\n= 1003 epoch 1")
	})
}

// TestHistoryReplacedBehindA410: no connection fails, so there is no probe; the list itself is older than the known
// state.
func TestHistoryReplacedBehindA410(t *testing.T) {
	for _, c := range []struct{ name, object, second, want string }{
		{"an object is older", "a", "~ a 1001>1003\n= 1003 epoch 1", "~ a 1003>1001 relisted"},
		{"only the list is older", "c", "+ c 1003\n= 1003 epoch 1", "- c 1003 relisted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var backup informertest.Snapshot
			before := func(s *informertest.Server) {
				two(s)
				backup = s.Snapshot()
			}
			scenario(t, informer.SourceOptions{}, before, func(r *rig) {
				r.want("the first list", twoListed)
				r.server.Put(widgets, "n", c.object, spec(2))
				r.want("the old history", c.second)
				r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
					r.server.Intercept(nil)
					r.server.Restore(backup)
					informertest.Refuse(w, http.StatusGone, metav1.StatusReasonExpired, "too old")
					return true
				})
				r.pass(2 * time.Second)
				r.server.CloseWatches()
				r.pass(time.Second)
				r.want("the new history", "! expired, history-changed 1003..1002\n"+c.want+"\n= 1002 epoch 2")
			})
		})
	}
}
