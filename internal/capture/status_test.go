package capture

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/selection"
)

// one returns the status of a resource's only stream, and a summary of it.
func (r *rig) one(resource string) (StreamStatus, string) {
	r.Helper()
	synctest.Wait()
	var found []StreamStatus
	for _, s := range r.watcher.Streams() {
		if s.Resource.Resource == resource {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		r.Fatalf("%d streams of %s", len(found), resource)
	}
	return found[0], fmt.Sprintf("%s, %d objects", found[0].State, found[0].Objects)
}

// TestStreams produces each state, and each transition.
func TestStreams(t *testing.T) {
	before := func(s *informertest.Server) {
		define(s)
		s.Put(cmGVR, "n", "a", data("k", "1"))
		s.Put(widgetsGVR, "n", "w", nil)
		s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("secrets")))
	}
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,secrets,widgets"}}}}, before, func(r *rig) {
		began := time.Now()
		s, text := r.one("configmaps")
		if text != "live, 1 objects" || s.Version == "" || s.Lists != 1 || s.Watches != 1 || s.Err != nil || !s.ErrAt.IsZero() || s.Since.After(began) || s.Since.IsZero() || !s.Trying.IsZero() {
			t.Errorf("after its first list: %s, %+v", text, s)
		}
		if s, text = r.one("secrets"); text != "forbidden, 0 objects" || s.Err == nil || s.Version != "" || !s.Trying.IsZero() {
			t.Errorf("refused: %s, %+v", text, s)
		}
		r.server.Intercept(nil)
		r.pass(2 * time.Minute)
		if s, text = r.one("secrets"); text != "live, 0 objects" || s.Err == nil || s.ErrAt.Before(began) || !s.ErrAt.Before(s.Since) || s.Lists < 2 || !s.Since.After(began) {
			t.Errorf("allowed, with why it was not before: %s, %+v", text, s)
		}

		r.server.SetDown(true)
		r.pass(10 * time.Second)
		if s, text = r.one("configmaps"); text != "waiting, 1 objects" || s.Err == nil || !s.ErrAt.After(began) || s.Trying.IsZero() {
			t.Errorf("the server is away: %s, %+v", text, s)
		}
		r.server.Compact()
		held := make(chan struct{})
		r.server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
			q := req.URL.Query()
			if !strings.HasSuffix(req.URL.Path, "/configmaps") || q.Get("resourceVersion") != "" && q.Get("resourceVersionMatch") == "" || q.Get("limit") == "1" {
				return false
			}
			w.Header().Set("Content-Type", "application/json") // the list starts but does not continue
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-held:
			case <-req.Context().Done():
			}
			return true
		})
		r.server.Skip(5)
		r.server.Compact()
		r.server.SetDown(false)
		r.pass(20 * time.Second)
		if s, _ = r.one("configmaps"); s.State != StreamListing || s.Gaps != 0 || s.Trying.IsZero() {
			t.Errorf("while it is listed again: %+v", s)
		}
		trying := s.Trying
		close(held)
		r.pass(30 * time.Second)
		if s, _ = r.one("configmaps"); s.State == StreamLive || !s.Trying.Equal(trying) || !s.Since.After(trying) {
			t.Errorf("while no list comes to its end: %+v", s)
		}
		r.server.Intercept(nil)
		r.pass(time.Minute)
		if s, text = r.one("configmaps"); text != "live, 1 objects" || s.Gaps != 1 || s.Lists < 2 || !s.Trying.IsZero() {
			t.Errorf("listed again: %s, %+v", text, s)
		}

		undefine(r.server, true)
		r.pass(30 * time.Second)
		if slices.ContainsFunc(r.watcher.Streams(), func(s StreamStatus) bool { return s.Resource.Resource == "widgets" }) {
			t.Error("a kind that went has a stream")
		}
		r.take()
	})
}

// TestStreamsListing: a slow list is visible, and so is one that starts before Run.
func TestStreamsListing(t *testing.T) {
	var held chan struct{} // of the bubble
	before := func(s *informertest.Server) {
		s.Intercept(func(_ http.ResponseWriter, req *http.Request) bool {
			if collection("pods")(req) {
				select {
				case <-held:
				case <-req.Context().Done():
				}
			}
			return false
		})
	}
	synctest.Test(t, func(t *testing.T) {
		held = make(chan struct{})
		r := start(t, Options{Scopes: []Scope{{Types: []string{"pods"}}}}, before)
		if s, text := r.one("pods"); text != "listing, 0 objects" || s.Resource.Kind != "Pod" || s.Err != nil {
			t.Errorf("%s, %+v", text, s)
		}
		close(held)
		r.pass(time.Second)
		if _, text := r.one("pods"); text != "live, 0 objects" {
			t.Error(text)
		}
		r.stop()
		if _, text := r.one("pods"); text != "waiting, 0 objects" {
			t.Errorf("after the end: %s", text)
		}
		r.take()
	})
}

// TestStateFor has states that are hard to produce.
func TestStateFor(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	for _, tc := range []struct {
		why  string
		st   informer.Status
		want StreamState
	}{
		{"resumed, and still catching up", informer.Status{State: informer.Watching, Loaded: true}, StreamListing},
		{"caught up", informer.Status{State: informer.Watching, Loaded: true, Synced: true}, StreamLive},
		{"listed again, though it was live", informer.Status{State: informer.Listing, Synced: true}, StreamListing},
		{"a refused kind that went", informer.Status{State: informer.Parked, Err: forbidden}, StreamGone},
		{"never opened", informer.Status{Err: errors.New("no such selector")}, StreamWaiting},
		{"unauthorized is a matter of time", informer.Status{State: informer.Waiting, Err: apierrors.NewUnauthorized("")}, StreamWaiting},
	} {
		if got := stateFor(tc.st); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
		}
	}
}

// TestStreamsAreNamed: there is one row for each kind, selection and namespace, in order.
func TestStreamsAreNamed(t *testing.T) {
	o := Options{Scopes: []Scope{
		{Types: []string{"configmaps", "a", "b"}, Namespaces: selection.Namespaces{Include: []string{"n", "m"}}},
		{Types: []string{"deployments"}, Labels: "app=x"},
	}}
	scenario(t, o, nil, func(r *rig) {
		r.take()
		var got []string
		for _, s := range r.watcher.Streams() {
			got = append(got, fmt.Sprintf("%s %s %s", s.Resource.GroupResource(), s.Namespace, s.Selection))
		}
		want := []string{
			`configmaps m labels="" fields="metadata.name=a"`, `configmaps n labels="" fields="metadata.name=a"`,
			`configmaps m labels="" fields="metadata.name=b"`, `configmaps n labels="" fields="metadata.name=b"`,
			`deployments.apps  labels="app=x" fields=""`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	})
}

// TestStreamsAreReopened: a feed that fell behind has its kind reopened; the counters continue.
func TestStreamsAreReopened(t *testing.T) {
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, nil, func(r *rig, _ func(func())) {
		r.take()
		was, _ := r.one("configmaps")
		k := r.watcher.kinds["configmaps"]
		r.watcher.reopen(k)
		r.pass(10 * time.Second)
		if now, text := r.one("configmaps"); text != "live, 0 objects" || now.Watches <= was.Watches || now.Lists < was.Lists {
			t.Errorf("%s: %d watches and %d lists after %d and %d", text, now.Watches, now.Lists, was.Watches, was.Lists)
		}
	})
}

// TestUnselected: a stream of an earlier run is only dropped if it is known that no scope selects it.
func TestUnselected(t *testing.T) {
	gone := schema.GroupVersionResource{Group: "gone.example.com", Version: "v1", Resource: "gadgets"}
	before := func(s *informertest.Server) {
		define(s)
		s.Serve(gone, "Gadget")
		s.SetStale("gone.example.com", true)
		s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("secrets")))
	}
	o := Options{Scopes: []Scope{
		{Types: []string{"configmaps"}, Namespaces: selection.Namespaces{Include: []string{"a"}}},
		{Types: []string{"pods"}, Namespaces: selection.Namespaces{Include: []string{"team-*"}}},
		{Types: []string{"secrets"}},
		{Types: []string{"widgets"}},
		{Types: []string{"deployments"}, Labels: "app=x"},
	}}
	scenario(t, o, before, func(r *rig) {
		if new(Watcher).Unselected("nodes", "", "") {
			t.Error("before discovery is asked, nothing is known")
		}
		r.take()
		for _, tc := range []struct {
			why                      string
			kind, namespace, selects string
			want                     bool
		}{
			{"watched", "configmaps", "a", "", false},
			{"a namespace that was taken out", "configmaps", "b", "", true},
			{"all namespaces before, one now", "configmaps", "", "", true},
			{"globs are watched over the whole cluster, matched or not", "pods", "", `namespaces=["team-*"] without=[]`, false},
			{"everything before, a glob now", "pods", "", "", true},
			{"one namespace before, a glob now", "pods", "team-a", "", true},
			{"the new selection may not be watched: the old one's place is worth keeping", "secrets", "a", "", false},
			{"another selection", "deployments.apps", "", `labels="app=y" fields=""`, true},
			{"no selection before", "deployments.apps", "", "", true},
			{"selected", "deployments.apps", "", `labels="app=x" fields=""`, false},
			{"a kind that no scope has", "nodes", "", "", true},
			{"a kind that the server never had", "gizmos.example.com", "", "", false},
			{"a kind of a group that does not answer", "gadgets.gone.example.com", "", "", false},
		} {
			if got := r.watcher.Unselected(tc.kind, tc.namespace, tc.selects); got != tc.want {
				t.Errorf("%s: %v", tc.why, got)
			}
		}
		undefine(r.server, true)
		r.pass(time.Minute)
		if r.watcher.Unselected("widgets.example.com", "a", "") {
			t.Error("a kind that went may come back")
		}
		define(r.server)
		r.pass(time.Minute)
		if _, text := r.one("widgets"); !strings.HasPrefix(text, "live") || !r.watcher.Unselected("widgets.example.com", "a", "") {
			t.Errorf("%s; back, and no scope selects that namespace", text)
		}
		r.take()
	})
}

// TestTrying: whatever state a stream passes through, it has not been live since it started to try.
func TestTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("connection reset")
		s := streamState{}
		for _, tc := range []struct {
			why  string
			st   informer.Status
			want time.Duration // how long it has been trying; negative: it is not
		}{
			{"its first list", informer.Status{State: informer.Listing}, 0},
			{"that fails", informer.Status{State: informer.Waiting, Err: broken}, time.Minute},
			{"the next one", informer.Status{State: informer.Listing}, 2 * time.Minute},
			{"fails, too", informer.Status{State: informer.Waiting, Err: broken}, 3 * time.Minute},
			{"now it may not be watched", informer.Status{State: informer.Waiting, Err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, -1},
			{"and may", informer.Status{State: informer.Listing}, 0},
			{"it is live", informer.Status{State: informer.Watching, Synced: true}, -1},
			{"it was cut", informer.Status{State: informer.Waiting, Synced: true, Err: broken}, 0},
			{"it lists again", informer.Status{State: informer.Listing, Synced: true}, time.Minute},
			{"its kind went", informer.Status{State: informer.Parked}, -1},
		} {
			s.noteTrying(tc.st)
			got := time.Duration(-1)
			if !s.trying.IsZero() {
				got = time.Since(s.trying)
			}
			if got != tc.want {
				t.Errorf("%s: tries for %s, want %s", tc.why, got, tc.want)
			}
			<-time.After(time.Minute)
		}
	})
}
