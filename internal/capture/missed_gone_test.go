package capture

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
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

// TestMissedSuccessor: an object was gone before the next one of its name was created, whatever arrives between the two.
func TestMissedSuccessor(t *testing.T) {
	after, seen := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 10, 1, 0, 0, time.UTC)
	second := func(s int) time.Time { return after.Add(time.Duration(s) * time.Second) }
	version := func(created time.Time) feed.Version {
		return feed.NewVersion("5", fmt.Appendf(nil, `{"metadata":{"creationTimestamp":%q}}`, created.Format(time.RFC3339)))
	}
	deleted := func(name string, uid types.UID) feed.Delta {
		return feed.Delta{Op: informer.Deleted, Key: informer.Key{Namespace: "n", Name: name}, UID: uid, Old: version(after.Add(-time.Hour)), At: seen, After: after}
	}
	added := func(name string, uid types.UID, created int) feed.Delta {
		return feed.Delta{Op: informer.Added, Key: informer.Key{Namespace: "n", Name: name}, UID: uid, New: version(second(created)), At: seen, After: after}
	}
	b := builder{}
	for _, tc := range []struct {
		why    string
		deltas []feed.Delta
		want   time.Time // when the first object was gone
	}{
		{"the successor is next", []feed.Delta{deleted("a", "1"), added("a", "2", 10)}, second(10)},
		{"others are in between", []feed.Delta{deleted("a", "1"), deleted("b", "3"), added("b", "4", 5), added("a", "2", 10)}, second(10)},
		{"the successor has successors", []feed.Delta{deleted("a", "1"), added("b", "3", 5), added("a", "2", 10), deleted("a", "2"), added("a", "4", 20)}, second(10)},
		{"it has none", []feed.Delta{deleted("a", "1"), added("b", "3", 5)}, seen},
		{"the object left the selection and is back", []feed.Delta{deleted("a", "1"), added("b", "3", 5), added("a", "1", -3600)}, seen},
	} {
		v, err := b.version(t.Context(), Resource{}, event.Deleted, &tc.deltas[0], tc.deltas[1:], nil)
		if err != nil || !v.Since.Equal(after) || !v.Time.Equal(tc.want) {
			t.Errorf("%s: gone between %v and %v, %v; want %v and %v", tc.why, v.Since, v.Time, err, after, tc.want)
		}
	}
}

// TestOrderOfMissed: after a list, the deletion of an object comes right before the creation of the next one of its name, and
// that of an object without a successor at the end. docs/sinks/webhook.md says so.
func TestOrderOfMissed(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "n", "a", data("k", "1"))
		s.Put(cmGVR, "n", "b", data("k", "1"))
	}
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, again func(func())) {
		r.pass(time.Minute)
		again(func() {
			for _, name := range []string{"a", "b"} {
				r.server.Delete(cmGVR, "n", name)
			}
			for _, name := range []string{"c", "a"} {
				r.server.Put(cmGVR, "n", name, data("k", "2"))
			}
			r.server.Compact()
		})
		r.pass(time.Minute)
		var got []string
		for _, v := range r.changesOf() {
			if v.Op == event.Deleted || v.Op == event.Created {
				got = append(got, string(v.Op)+" "+v.Name)
			}
		}
		if want := []string{"created c", "deleted a", "created a", "deleted b"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
