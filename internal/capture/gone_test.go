package capture

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/selection"
)

// TestKindThatGoesWhileNothingWatches: its objects are gone with it, and its streams, too.
func TestKindThatGoesWhileNothingWatches(t *testing.T) {
	before := func(s *informertest.Server) {
		define(s)
		s.Put(widgetsGVR, "n", "a", nil)
		s.Put(widgetsGVR, "m", "b", nil)
	}
	every := Options{}
	types := func(s Scope) Options { return Options{Scopes: []Scope{s}} }
	for _, tc := range []struct {
		why         string
		first, then Options
		want        []string // deletions
	}{
		{"everything is watched", every, every, []string{"gap widgets not served", "deleted widgets/a", "deleted widgets/b"}},
		{"the kind is named", types(Scope{Types: []string{"configmaps,widgets"}}), types(Scope{Types: []string{"configmaps,widgets"}}),
			[]string{"gap widgets not served", "deleted widgets/a", "deleted widgets/b"}},
		{"one object is named", types(Scope{Types: []string{"widgets", "a"}}), types(Scope{Types: []string{"widgets", "a"}}),
			[]string{"gap widgets not served", "deleted widgets/a"}},
		{"a selector, which it matched", types(Scope{Labels: "!x"}), types(Scope{Labels: "!x"}),
			[]string{"gap widgets not served", "deleted widgets/a", "deleted widgets/b"}},
		{"each namespace has a stream", types(Scope{Types: []string{"widgets"}, Namespaces: selection.Namespaces{Include: []string{"m", "n"}}}),
			types(Scope{Types: []string{"widgets"}, Namespaces: selection.Namespaces{Include: []string{"m", "n"}}}),
			[]string{"gap widgets not served in n", "gap widgets not served in m", "deleted widgets/a", "deleted widgets/b"}},
		{"it is no longer watched", every, types(Scope{Except: []string{"widgets"}}), nil},
		{"it is no longer watched: others are named", every, types(Scope{Types: []string{"configmaps"}}), nil},
	} {
		t.Run(tc.why, func(t *testing.T) {
			keeping(t, tc.first, before, func(r *rig, _ func(func())) {
				r.take()
				o := tc.then
				o.Kept, o.Redactor = r.memory, r.watcher.o.Redactor
				r.stop()
				undefine(r.server, true)
				r.begin(o)
				r.pass(20 * time.Second)
				got := r.take()
				ready := got[len(got)-1]
				var of []string
				for _, line := range got {
					if strings.Contains(line, "widgets") && !strings.Contains(line, "customresourcedefinitions") {
						of = append(of, line)
					}
				}
				if !sameLines(of, tc.want) {
					t.Errorf("got %q, want %q", of, tc.want)
				}
				if !strings.HasPrefix(ready, "ready") {
					t.Errorf("the start does not end with the deletions: %q", got)
				}
				for _, s := range r.watcher.Streams() {
					if s.Resource.Resource == "widgets" {
						t.Errorf("a stream is left: %+v", s)
					}
				}
				for name, st := range r.memory.streams {
					if tc.want != nil && strings.HasPrefix(name, "widgets") {
						t.Errorf("%s is kept: %+v", name, st)
					}
				}
				if un := r.watcher.Unselected("widgets.example.com", "", ""); !un {
					t.Error("a stream that is left would be kept for ever")
				}
				if tc.want == nil || len(tc.then.Scopes) > 0 && tc.then.Scopes[0].Labels != "" {
					return
				}
				define(r.server)
				r.server.Put(widgetsGVR, "n", "a", nil)
				r.pass(time.Minute)
				if got := strings.Join(r.take(), "\n"); !strings.Contains(got, "created widgets/a") || strings.Contains(got, "gap") {
					t.Errorf("it comes back as a new kind: %s", got)
				}
			})
		})
	}
}

// TestKindOfAnUnknownGroup: a kind whose API group does not answer is not gone.
func TestKindOfAnUnknownGroup(t *testing.T) {
	before := func(s *informertest.Server) {
		define(s)
		s.Put(widgetsGVR, "n", "a", nil)
	}
	t.Run("and is there", func(t *testing.T) {
		keeping(t, Options{}, before, func(r *rig, again func(func())) {
			r.take()
			again(func() {
				r.server.SetStale("example.com", true)
				r.server.Intercept(refuse(http.StatusNotFound, metav1.StatusReasonNotFound, collection("widgets")))
			})
			r.pass(5 * time.Minute)
			r.want("it is unknown", "ready: 8 kinds, 1 objects, hidden events")
			if r.watcher.Unselected("widgets.example.com", "", "") {
				t.Error("the stream would be forgotten")
			}
			r.server.Intercept(nil)
			r.server.SetStale("example.com", false)
			r.pass(time.Minute)
			r.want("it goes on, without a gap", []string{}...)
			r.server.Put(widgetsGVR, "n", "b", nil)
			r.want("it is watched", "created widgets/b")
		})
	})
	t.Run("and is gone once the group answers", func(t *testing.T) {
		keeping(t, Options{}, before, func(r *rig, again func(func())) {
			r.take()
			again(func() { r.server.SetStale("example.com", true) })
			r.pass(time.Minute)
			r.take()
			undefine(r.server, true)
			r.server.SetStale("example.com", false)
			r.pass(time.Minute)
			r.want("now it is known", crdDeleted, "gap widgets not served", "deleted widgets/a")
		})
	})
	t.Run("discovery lacks it for the moment only", func(t *testing.T) {
		hidden := func(r *http.Request) bool { return r.URL.Path == "/apis/example.com/v1" }
		keeping(t, Options{}, before, func(r *rig, again func(func())) {
			r.take()
			again(func() { r.server.Intercept(refuse(http.StatusNotFound, metav1.StatusReasonNotFound, hidden)) })
			r.pass(time.Minute)
			r.server.Put(widgetsGVR, "n", "b", nil)
			got := strings.Join(r.take(), "\n")
			if strings.Contains(got, "gap") || strings.Contains(got, "deleted") || !strings.Contains(got, "created widgets/b") {
				t.Errorf("got %s", got)
			}
		})
	})
}

func sameLines(a, b []string) bool {
	return len(a) == len(b) && strings.Join(sorted(a), "\n") == strings.Join(sorted(b), "\n")
}
