package capture

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestMissedDeletionAndSuccessor: an object was gone before another one got its name.
func TestMissedDeletionAndSuccessor(t *testing.T) {
	for _, compacted := range []bool{true, false} {
		before := func(s *informertest.Server) { s.Put(cmGVR, "n", "a", data("k", "1")) }
		keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, again func(func())) {
			r.pass(time.Minute)
			var gone, created time.Time
			again(func() {
				<-time.After(time.Hour)
				gone = time.Now()
				r.server.Delete(cmGVR, "n", "a")
				<-time.After(time.Minute)
				created = time.Now().Truncate(time.Second)
				r.server.Put(cmGVR, "n", "a", map[string]any{"metadata": map[string]any{"creationTimestamp": created.Format(time.RFC3339)}})
				<-time.After(time.Hour)
				if compacted {
					r.server.Compact()
				}
			})
			r.pass(time.Minute)
			n := 0
			for _, v := range r.changesOf() {
				if v.Op != event.Deleted {
					continue
				}
				n++
				from, to := v.Span()
				cut := to.Equal(created) || !compacted && to.Equal(v.At) // a watch may deliver the deletion alone
				if from.After(gone) || !cut || v.At.Before(created.Add(time.Hour)) {
					t.Errorf("compacted %v: gone at %v, the next at %v: from %v to %v, seen %v", compacted, gone, created, from, to, v.At)
				}
			}
			if n != 1 {
				t.Errorf("%d deletions", n)
			}
		})
	}
}
