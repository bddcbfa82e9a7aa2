package capture

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/selection"
)

// define creates a CRD, and serves its kind a moment later, as an API server does.
func define(s *informertest.Server) {
	s.Put(crdGVR, "", "widgets.example.com", nil)
	s.Serve(widgetsGVR, "Widget")
}

// undefine removes the CRD and its objects. A real server sends the deletions before it ends the watches;
// silently simulates a watch that ended too early to receive them.
func undefine(s *informertest.Server, silently bool) {
	if silently {
		s.Unserve(widgetsGVR)
	}
	for key := range s.Objects(widgetsGVR) {
		ns, name, _ := strings.Cut(key, "/")
		s.Delete(widgetsGVR, ns, name)
	}
	s.Delete(crdGVR, "", "widgets.example.com")
}

const crdCreated, crdDeleted = "created customresourcedefinitions/widgets.example.com", "deleted customresourcedefinitions/widgets.example.com"

func TestKindThatAppearsGoesAndComesBack(t *testing.T) {
	scenario(t, Options{}, nil, func(r *rig) {
		r.want("the start", "ready: 8 kinds, 0 objects, hidden events")
		define(r.server)
		r.server.Put(widgetsGVR, "n", "a", nil)
		r.server.Put(widgetsGVR, "n", "b", nil)
		r.pass(5 * time.Second)
		r.want("objects of its first list were created", crdCreated, "created widgets/a", "created widgets/b")
		r.server.Put(widgetsGVR, "n", "c", nil)
		r.want("it is watched", "created widgets/c")

		undefine(r.server, false)
		r.want("the deletions that the watch received", crdDeleted, "deleted widgets/a", "deleted widgets/b", "deleted widgets/c")
		r.server.Unserve(widgetsGVR)
		r.pass(5 * time.Minute)
		r.want("each is reported once", []string{}...)

		define(r.server)
		r.server.Put(widgetsGVR, "n", "a", nil)
		r.pass(10 * time.Second)
		r.want("the kind comes back", crdCreated, "created widgets/a")

		undefine(r.server, true)
		r.pass(10 * time.Second)
		r.want("deletions that the watch ended too early to send are reported", crdDeleted, "gap widgets not served", "deleted widgets/a")
		r.pass(5 * time.Minute)
		r.want("once, however often discovery is asked", []string{}...)
	})
}

// TestKindThatGoesBeforeItsFirstList: discovery still has the kind, but the server no longer serves it.
func TestKindThatGoesBeforeItsFirstList(t *testing.T) {
	hook := refuse(http.StatusNotFound, metav1.StatusReasonNotFound, collection("widgets"))
	before := func(s *informertest.Server) {
		define(s)
		s.Intercept(hook)
	}
	scenario(t, Options{}, before, func(r *rig) {
		r.want("the start", "ready: 8 kinds, 1 objects, hidden events", "failing: widgets.example.com")
		asked := len(r.server.Requests())
		r.pass(10 * time.Minute)
		now := slices.DeleteFunc(r.server.Requests()[asked:], func(request string) bool { return strings.Contains(request, "/version") }) // heartbeats
		if n := len(now); n > 400 {                                                                                                       // 3 in 30 s, besides the watches' own
			r.Errorf("%d requests in 10 minutes", n)
		}
		r.server.Unserve(widgetsGVR)
		r.pass(time.Minute)
		r.server.Intercept(nil)
		r.server.Serve(widgetsGVR, "Widget")
		r.server.Put(widgetsGVR, "n", "a", nil)
		r.pass(time.Minute)
		r.want("it was away: its objects are new", "created widgets/a")
	})
}

// TestKindThatIsMissingForAWhile: an API server that is starting may not know its custom resources at first. A
// kind that answers 404 stays while discovery has it.
func TestKindThatIsMissingForAWhile(t *testing.T) {
	before := func(s *informertest.Server) {
		define(s)
		s.Put(widgetsGVR, "n", "a", nil)
		s.Put(widgetsGVR, "n", "b", nil)
	}
	scenario(t, Options{}, before, func(r *rig) {
		r.want("the start", "ready: 9 kinds, 3 objects, hidden events")
		r.server.Intercept(refuse(http.StatusNotFound, metav1.StatusReasonNotFound, collection("widgets")))
		r.server.Cut()
		r.pass(5 * time.Second)
		r.server.Delete(widgetsGVR, "n", "b")
		r.pass(5 * time.Minute)
		got := strings.Join(r.take(), "\n")
		if strings.Contains(got, "widgets/") || strings.Contains(got, "gap") {
			r.Errorf("made up: %s", got)
		}
		r.server.Intercept(nil)
		r.pass(time.Minute)
		r.inOrder("the changes, without a gap", "deleted widgets/b")
	})
}

func TestVersionThatIsNotServedAnyMore(t *testing.T) {
	before := func(s *informertest.Server) {
		define(s)
		s.Put(widgetsGVR, "n", "a", data("k", "1"))
		s.Put(widgetsGVR, "n", "b", data("k", "1"))
		s.Put(widgetsGVR, "m", "c", data("k", "1"))
	}
	v2 := widgetsGVR.GroupResource().WithVersion("v2")
	for _, tt := range []struct {
		why        string
		o          Options
		start, gap string
	}{
		{"everything", Options{Initial: true}, "ready: 9 kinds, 4 objects, hidden events", "gap widgets not served as v1, now as v2"},
		{"a type", Options{Scopes: []Scope{{Types: []string{"widgets"}}}, Initial: true}, "ready: 1 kinds, 3 objects", "gap widgets not served as v1, now as v2"},
		{"a type in a namespace", Options{Scopes: []Scope{{Types: []string{"widgets"}, Namespaces: selection.Namespaces{Include: []string{"n"}}}}, Initial: true},
			"ready: 1 kinds, 2 objects", "gap widgets not served as v1, now as v2 in n"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			scenario(t, tt.o, before, func(r *rig) {
				if got := r.take(); !strings.Contains(strings.Join(got, "\n"), tt.start) {
					r.Fatalf("the start: %v", got)
				}
				r.server.Serve(v2, "Widget")
				r.pass(5 * time.Minute)
				r.want("a second version changes nothing: the first is pinned", []string{}...)
				r.server.Move(widgetsGVR, "v2")
				r.pass(500 * time.Millisecond)
				r.server.Delete(v2, "n", "b")
				r.pass(time.Minute)
				r.inOrder("only real differences, and why some may be missing", tt.gap, "deleted widgets/b")
				r.server.Put(v2, "n", "a", data("k", "1"))
				r.want("the API version has no writer", "updated widgets/a quietly apiVersion by ? metadata.resourceVersion by ?")
				r.server.Put(v2, "n", "a", data("k", "2"))
				r.want("it goes on", "updated widgets/a data.k by ?")
			})
		})
	}
}

// TestChangesNameTheServedVersion: after a move, changes carry the new version.
func TestChangesNameTheServedVersion(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"widgets"}}}}, define, func(r *rig) {
		r.take()
		r.server.Move(widgetsGVR, "v2")
		r.pass(time.Minute)
		r.take()
		k := r.watcher.kinds[widgetsGVR.GroupResource().String()]
		if v := k.resource().Version; v != "v2" {
			r.Errorf("watched as %s", v)
		}
		r.server.Put(widgetsGVR.GroupResource().WithVersion("v2"), "n", "a", nil)
		r.want("it is watched", "created widgets/a")
	})
}

func TestDiscoveryThatFails(t *testing.T) {
	discovery := func(r *http.Request) bool { return r.URL.Path == "/api" || r.URL.Path == "/apis" }
	before := func(s *informertest.Server) {
		define(s)
		s.Put(widgetsGVR, "n", "a", nil)
	}
	t.Run("as a whole, keeps everything", func(t *testing.T) {
		scenario(t, Options{}, before, func(r *rig) {
			r.want("the start", "ready: 9 kinds, 2 objects, hidden events")
			r.server.Intercept(refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, discovery))
			r.server.Unserve(widgetsGVR)
			r.pass(5 * time.Minute)
			r.want("a kind is gone only if discovery says so, too", []string{}...)
			r.server.Intercept(nil)
			r.pass(time.Minute)
			r.want("now it does", "gap widgets not served", "deleted widgets/a")
		})
	})
	t.Run("for one group, keeps that", func(t *testing.T) {
		scenario(t, Options{}, before, func(r *rig) {
			r.want("the start", "ready: 9 kinds, 2 objects, hidden events")
			r.server.SetStale("example.com", true)
			r.server.Intercept(refuse(http.StatusNotFound, metav1.StatusReasonNotFound, collection("widgets")))
			r.server.CloseWatches()
			r.pass(5 * time.Minute)
			r.want("it is unknown, not gone", []string{}...)
			r.server.Intercept(nil)
			r.server.SetStale("example.com", false)
			r.pass(time.Minute)
			r.want("and comes back without a gap", []string{}...)
			r.server.Put(widgetsGVR, "n", "b", nil)
			r.want("it is watched", "created widgets/b")
		})
	})
	t.Run("at the start, for one group: its objects existed", func(t *testing.T) {
		stale := func(s *informertest.Server) {
			before(s)
			s.SetStale("example.com", true)
		}
		scenario(t, Options{}, stale, func(r *rig) {
			r.want("the start", "ready: 8 kinds, 1 objects, hidden events")
			r.server.SetStale("example.com", false)
			r.pass(time.Minute)
			r.want("no news", []string{}...)
			r.server.Put(widgetsGVR, "n", "b", nil)
			r.want("but then", "created widgets/b")
			undefine(r.server, true)
			r.pass(time.Minute)
			r.take()
			define(r.server)
			r.server.Put(widgetsGVR, "n", "c", nil)
			r.pass(time.Minute)
			r.want("once known, it can come back", crdCreated, "created widgets/c")
		})
	})
}

// TestQuietStart: existing CRDs are not a reason to poll discovery again.
func TestQuietStart(t *testing.T) {
	scenario(t, Options{}, define, func(r *rig) {
		r.pass(25 * time.Second)
		looks := 0
		for _, uri := range r.server.Requests() {
			if uri == "/apis" {
				looks++
			}
		}
		if looks != 1 {
			r.Errorf("%d looks at discovery, want 1", looks)
		}
	})
}

// TestBusyCRDs: a controller that writes CRDs all the time must not hide a new kind, nor must each write cause
// a poll.
func TestBusyCRDs(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"customresourcedefinitions,widgets"}}}}, define, func(r *rig) {
		r.take()
		asked := len(r.server.Requests())
		undefine(r.server, true)
		for range 100 { // 10 s
			r.server.Put(crdGVR, "", "others.example.com", nil)
			r.pass(100 * time.Millisecond)
		}
		looks := 0
		for _, uri := range r.server.Requests()[asked:] {
			if uri == "/apis" {
				looks++
			}
		}
		if looks < 10 || looks > 60 {
			r.Errorf("%d looks at discovery in 10 s", looks)
		}
	})
}

// TestKindThatAppearsDuringTheStart: kinds that discovery finds later are not part of the start.
func TestKindThatAppearsDuringTheStart(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if collection("pods")(r) {
				<-r.Context().Done() // the engine ends it
				panic(http.ErrAbortHandler)
			}
			return false
		})
	}
	scenario(t, Options{}, before, func(r *rig) {
		r.want("the other kinds are live", []string{}...)
		r.server.Put(crdGVR, "", "other.example.com", nil)
		define(r.server)
		r.server.Put(widgetsGVR, "n", "a", nil)
		r.pass(10 * time.Second)
		r.want("not ready before pods are", crdCreated, "created customresourcedefinitions/other.example.com", "created widgets/a")
		r.server.Intercept(nil)
		r.pass(2 * time.Minute)
		r.want("ready once", "failing: pods", "ready: 8 kinds, 3 objects, hidden events")
	})
}
