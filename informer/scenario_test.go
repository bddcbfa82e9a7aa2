package informer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// two puts a (1001) and b (1002).
func two(s *informertest.Server) {
	s.Put(widgets, "n", "a", spec(1))
	s.Put(widgets, "n", "b", spec(1))
}

const twoListed = `
	+ a 1001 initial
	+ b 1002 initial
	= 1002 epoch 1`

func TestListWatch(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Put(widgets, "n", "c", spec(1))
		r.server.Delete(widgets, "n", "b")
		r.server.Put(widgets, "n", "b", spec(1))
		got := r.feed.take()
		// batch sizes depend on timing, so live lines are left out
		want := "~ a 1001>1003\n+ c 1004\n- b 1002 final 1005\n+ b 1006"
		if got := without(got, "="); got != want {
			r.Errorf("changes:\n%s\nwant:\n%s", got, want)
		}
		if got, want := r.states.take(), "listing watching"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
		if st := r.source.Status()[0]; st.Objects != 3 || st.Version != "1006" || !st.Synced {
			r.Errorf("status: %+v", st)
		}
	})
}

// without removes the lines that begin with mark.
func without(text, mark string) string {
	var keep []string
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, mark) {
			keep = append(keep, strings.TrimSuffix(l, "\n"))
		}
	}
	return strings.Join(keep, "\n")
}

func TestListInPages(t *testing.T) {
	many := func(s *informertest.Server) {
		for i := range 1201 {
			s.Put(widgets, "n", "w"+strconv.Itoa(10000+i), spec(i))
		}
	}
	scenario(t, informer.SourceOptions{}, many, func(r *rig) {
		if n := strings.Count(r.feed.take(), " initial"); n != 1201 {
			r.Errorf("%d objects in the first list, want 1201", n)
		}
		lists := 0
		for _, q := range r.server.Requests() {
			if strings.Contains(q, "limit=500") {
				lists++
			}
		}
		if lists != 3 {
			r.Errorf("%d pages were asked for, want 3: %v", lists, r.server.Requests())
		}
	})
}

func TestTokenExpires(t *testing.T) {
	many := func(s *informertest.Server) {
		for i := range 501 {
			s.Put(widgets, "n", "w"+strconv.Itoa(10000+i), spec(i))
		}
		s.Intercept(func(_ http.ResponseWriter, q *http.Request) bool {
			if q.URL.Query().Has("continue") {
				s.Intercept(nil)
				s.Put(widgets, "n", "w10000", spec("new"))
				s.Delete(widgets, "n", "w10001")
				s.Compact()
			}
			return false
		})
	}
	scenario(t, informer.SourceOptions{}, many, func(r *rig) {
		got := without(r.feed.take(), "+")
		if want := "~ w10000 1001>1502 relisted\n- w10001 1002 relisted\n= 1503 epoch 1"; got != want {
			r.Errorf("after the list began again:\n%s\nwant:\n%s", got, want)
		}
		last := r.server.Requests()[2]
		if strings.Contains(last, "limit") {
			r.Errorf("the second list is paged again: %s", last)
		}
	})
}

func TestCleanCloseIsNoFailure(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.pass(90 * time.Second)
		r.want("the bookmark of the first minute moves nothing", "")
		r.server.CloseWatches()
		r.server.Put(widgets, "n", "a", spec(2))
		r.want("after the close", "~ a 1001>1003\n= 1003 epoch 1")
		if got, want := r.states.take(), "listing watching"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
	})
}

func TestServerThatClosesAtOnceDoesNotCauseALoop(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			if !q.URL.Query().Has("watch") {
				return false
			}
			w.WriteHeader(http.StatusOK)
			return true
		})
		before := len(r.server.Requests())
		r.server.CloseWatches()
		r.pass(time.Minute)
		if n := len(r.server.Requests()) - before; n < 10 || n > 60 {
			r.Errorf("%d requests in a minute", n)
		}
		r.server.Intercept(nil)
		r.server.Put(widgets, "n", "a", spec(2))
		r.pass(10 * time.Second)
		r.want("once watches last", "~ a 1001>1003\n= 1003 epoch 1")
	})
}

func TestGone(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Put(widgets, "n", "keep", spec(1))
		r.want("one more", "+ keep 1003\n= 1003 epoch 1")
		r.server.SetDown(true)
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Put(widgets, "n", "a", spec(3))
		r.server.Delete(widgets, "n", "b")
		r.server.Put(widgets, "n", "b", spec("recreated"))
		r.server.Put(widgets, "n", "c", spec(1))
		r.server.Put(widgets, "n", "brief", spec(1))
		r.server.Delete(widgets, "n", "brief")
		r.server.Compact()
		r.pass(14 * time.Second)
		r.server.SetDown(false)
		r.pass(10 * time.Second)
		r.want("net changes after one gap; unchanged objects are not delivered", `
			! expired 1003..1010
			~ a 1001>1005 relisted
			- b 1002 relisted
			+ b 1007 relisted
			+ c 1008 relisted
			= 1010 epoch 1`)
		states := r.states.take()
		if !strings.HasPrefix(states, "listing watching waiting/1 ") || !strings.HasSuffix(states, " watching") {
			r.Errorf("states: %s", states)
		}
	})
}

func TestGoneBeforeTheAnswer(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			if !q.URL.Query().Has("watch") {
				return false
			}
			r.server.Intercept(nil)
			informertest.Refuse(w, http.StatusGone, metav1.StatusReasonExpired, "too old")
			return true
		})
		r.pass(2 * time.Second)
		r.server.CloseWatches()
		r.pass(2 * time.Second)
		r.want("410 as the status of a watch is a relist, too", "! expired 1002..1002\n= 1002 epoch 1")
	})
}

func TestResumeAfterACut(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.SetDown(true)
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Put(widgets, "n", "a", spec(3))
		r.server.SetDown(false)
		r.pass(6 * time.Second)
		if got := without(r.feed.take(), "="); got != "~ a 1001>1003\n~ a 1003>1004" {
			r.Errorf("want every version that the server has; got\n%s", got)
		}
	})
}

func TestHistoryReplaced(t *testing.T) {
	var backup informertest.Snapshot
	before := func(s *informertest.Server) {
		two(s)
		backup = s.Snapshot()
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Put(widgets, "n", "a", spec("old 2"))
		r.want("the old history", "~ a 1001>1003\n= 1003 epoch 1")
		r.server.Put(widgets, "n", "c", spec("old"))
		r.want("the old history", "+ c 1004\n= 1004 epoch 1")
		r.server.Restore(backup)
		r.server.Put(widgets, "n", "a", spec("other 2")) // 1003 again, with another content
		r.pass(10 * time.Second)
		r.want("a new epoch; the same version with another content is an update", `
			! history-changed 1004..1003
			~ a 1003>1003 relisted
			- c 1004 relisted
			= 1003 epoch 2`)
		r.server.Put(widgets, "n", "b", spec(2))
		r.want("the new history goes on", "~ b 1002>1004\n= 1004 epoch 2")
	})
}

func TestSilence(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.pass(61 * time.Second) // a bookmark arms the watchdog
		r.server.Mute(true)
		r.server.Put(widgets, "n", "a", spec(2))
		r.pass(time.Minute)
		r.want("nothing comes through", "")
		r.pass(2 * time.Minute)
		r.server.Mute(false)
		r.pass(10 * time.Second)
		r.want("a new watch", "~ a 1001>1003\n= 1003 epoch 1")
		if got, want := r.states.take(), "listing watching waiting/1 watching/1 watching"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
	})
}

func TestVersionFromThePast(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Send(widgets, `{"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"b","uid":"uid-2","resourceVersion":"999"}}}`+"\n")
		again, err := json.Marshal(r.server.Objects(widgets)["n/b"])
		if err != nil {
			r.Fatal(err)
		}
		r.server.Send(widgets, `{"type":"MODIFIED","object":`+string(again)+"}\n")
		r.server.Send(widgets, `{"type":"DELETED","object":{"metadata":{"namespace":"n","name":"b","uid":"uid-2","resourceVersion":"1000"}}}`+"\n")
		r.want("neither an older version nor the same again is a change", "")
		if d := r.source.Status()[0].Dropped; d.Past != 2 || d.Repeated != 1 {
			r.Errorf("counted %+v", d)
		}
	})
}

func TestGarbage(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.pass(2 * time.Second)
		before := len(r.server.Requests())
		r.server.Send(widgets, `{"type":"ADDED","object":{"metadata":{"name":tru}}}`+"\n")
		r.want("the first time, the connection may be to blame", "")
		r.server.Put(widgets, "n", "a", spec(2))
		r.want("it was", "~ a 1001>1003\n= 1003 epoch 1")
		if n := len(r.server.Requests()) - before; n != 1 {
			r.Errorf("%d requests, want 1", n)
		}
	})
}

func TestGarbageThatComesAgain(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.pass(2 * time.Second)
		before := len(r.server.Requests())
		var n atomic.Int32
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			if !q.URL.Query().Has("watch") {
				return false
			}
			if n := n.Add(1); n > 2 {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"DELETED","object":{"metadata":{"name":"x" oops}}}`+"\n"+
				`{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"c","uid":"u","resourceVersion":"1004"}}}`+"\n")
			<-q.Context().Done()
			return true
		})
		r.server.CloseWatches()
		r.server.Delete(widgets, "n", "b")
		r.pass(time.Second)
		if got := r.feed.take(); got != "! unreadable 1002..1003\n- b 1002 relisted\n= 1003 epoch 1" {
			r.Errorf("want a list with a gap after a frame that stays unreadable; got\n%s", got)
		}
		if got := len(r.server.Requests()) - before; got != 8 {
			r.Errorf("%d requests, want a probe, a look at two objects, a probe since one is missing, two watches, a list and a watch", got)
		}
		if d := r.source.Status()[0].Dropped; d.Unreadable != 1 || d.LastErr == nil {
			r.Errorf("counted %+v", d)
		}
	})
}

func TestHalfAFrame(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Send(widgets, `{"type":"ADDED","object":{"metadata":{"name":"x`)
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Cut()
		r.pass(6 * time.Second)
		if got := without(r.feed.take(), "="); got != "~ a 1001>1003" {
			r.Errorf("after the cut:\n%s", got)
		}
	})
}
