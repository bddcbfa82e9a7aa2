package informer_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestRelistNotOlder: the list after an expired watch asks for a state that is not older than what was seen. A server that
// answers from an older watch cache nevertheless does not move the source backwards: its newest state is asked for.
func TestRelistNotOlder(t *testing.T) {
	for _, stale := range []bool{false, true} {
		scenario(t, informer.SourceOptions{}, func(s *informertest.Server) { s.Put(widgets, "n", "a", nil) }, func(r *rig) {
			r.feed.take()
			old := r.server.Version()
			r.server.Put(widgets, "n", "b", nil)
			seen := r.server.Version()
			epoch := strings.TrimPrefix(r.feed.take(), "+ b "+seen+"\n= "+seen)
			if stale {
				r.server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
					if !req.URL.Query().Has("resourceVersionMatch") {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"apiVersion":"example.com/v1","kind":"WidgetList","items":[],"metadata":{"resourceVersion":"` + old + `"}}`))
					return true
				})
			}
			r.server.SetDown(true)
			r.server.Put(widgets, "n", "c", nil)
			r.server.Compact()
			r.server.SetDown(false)
			r.pass(time.Minute)
			if got := r.feed.take(); !strings.Contains(got, "! expired") || strings.Contains(got, "\n- ") || !strings.HasSuffix(got, "= "+r.server.Version()+epoch) {
				t.Errorf("stale %v: the feed has\n%s\nthe server is at %s%s", stale, got, r.server.Version(), epoch)
			}
			var lists []string
			for _, q := range r.server.Recorded() {
				if q.Path == "/apis/example.com/v1/widgets" && q.Query.Get("limit") == "500" {
					lists = append(lists, strings.TrimSpace(q.Query.Get("resourceVersionMatch")+" "+q.Query.Get("resourceVersion")))
				}
			}
			want := ",NotOlderThan " + seen
			if stale {
				want += ","
			}
			if got := strings.Join(lists, ","); got != want {
				t.Errorf("stale %v: lists asked for %q, want %q", stale, got, want)
			}
		})
	}
}
