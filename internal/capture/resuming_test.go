package capture

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestKilledWhileResuming: changes read while resuming are kept with their version. If a watcher ends before it
// has caught up, the next one resumes from there, without a gap.
func TestKilledWhileResuming(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "shop", "a", data("k", "1"))
		s.Put(cmGVR, "shop", "b", data("k", "1"))
	}
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, again func(func())) {
		r.take()
		var version string
		again(func() {
			version = r.server.Put(cmGVR, "shop", "a", data("k", "2"))
			frame := modified(t, r.server, "shop/a")
			r.server.Put(cmGVR, "shop", "a", data("k", "3"))
			r.server.Put(cmGVR, "shop", "b", data("k", "3"))
			r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
				if !collection("configmaps")(q) || !q.URL.Query().Has("watch") {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, frame)
				w.(http.Flusher).Flush()
				<-q.Context().Done()
				return true
			})
		})
		r.pass(time.Second)
		r.want("the first change, and nothing is ready", "updated configmaps/a data.k by ?")
		r.memory.mu.Lock()
		if st := r.memory.streams["configmaps||"]; st.Version != version || !st.WasLive || st.Pipeline == "" {
			t.Errorf("kept: %+v, want version %s", st.State, version)
		}
		r.memory.mu.Unlock()
		again(func() { r.server.Intercept(nil) })
		r.want("the rest, without a gap", "updated configmaps/a data.k by ?", "updated configmaps/b data.k by ?", "ready: 1 kinds, 2 objects")
	})
}

// modified returns the watch frame of an object in its current state.
func modified(t *testing.T, s *informertest.Server, key string) string {
	t.Helper()
	o := maps.Clone(s.Objects(cmGVR)[key])
	o["apiVersion"], o["kind"] = "v1", "ConfigMap"
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"type":"MODIFIED","object":%s}`+"\n", raw)
}
