package capture

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/story"
)

// TestStoriesOfWholeObjects: what stories read of an update does not depend on which part of the object changed.
func TestStoriesOfWholeObjects(t *testing.T) {
	deployment := func(ready int) map[string]any {
		return map[string]any{"spec": map[string]any{"replicas": 3}, "status": map[string]any{"readyReplicas": ready, "observedGeneration": 1}}
	}
	before := func(s *informertest.Server) { s.Put(deployGVR, "shop", "web", deployment(1)) }
	keeping(t, Options{Scopes: []Scope{{Types: []string{"deployments"}}}}, before, func(r *rig, _ func(func())) {
		r.take()
		r.server.Put(deployGVR, "shop", "web", deployment(2)) // the spec is the same
		r.take()
		updates := 0
		for line := range strings.Lines(r.dump.String()) {
			var m struct {
				Batch *struct {
					Changes []struct{ Story *story.Input }
				}
			}
			if json.Unmarshal([]byte(line), &m) != nil || m.Batch == nil { // another message
				continue
			}
			for _, v := range m.Batch.Changes {
				if v.Story == nil || v.Story.Op != "updated" {
					continue
				}
				updates++
				if was, is := v.Story.Was.Pods, v.Story.Is.Pods; was.Wanted != 3 || is.Wanted != 3 || was.Ready != 1 || is.Ready != 2 {
					t.Errorf("the pods were %+v and are %+v", was, is)
				}
			}
		}
		if updates != 1 {
			t.Errorf("%d updates", updates)
		}
	})
}
