package informer_test

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestLate: changes during a restart or an outage happened after the stream was last current, and say so; changes
// received live have no such bound.
func TestLate(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		saved := k.at
		<-time.After(45 * time.Second)
		server.Put(widgets, "n", "a", spec(2))
		server.Delete(widgets, "n", "b")
		s, f := k.keep(c, feed.Options{})
		next := func(what string, deltas int, after time.Time) {
			t.Helper()
			for deltas > 0 {
				b, err := f.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range b.Deltas {
					if d.Relisted || !d.After.Equal(after) {
						t.Errorf("%s: %s relisted %v, after %v, want %v", what, line(d), d.Relisted, d.After, after)
					}
				}
				deltas -= len(b.Deltas)
			}
		}
		next("while no program ran", 2, saved)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		server.Put(widgets, "n", "a", spec(3))
		next("as it happens", 1, time.Time{})

		current := s.Status()[0].LastCurrent
		server.SetDown(true)
		<-time.After(20 * time.Second)
		server.Put(widgets, "n", "a", spec(4))
		<-time.After(20 * time.Second)
		server.Put(widgets, "n", "c", nil)
		server.SetDown(false)
		next("during an outage", 2, current)
		<-time.After(time.Minute)
		server.Put(widgets, "n", "c", spec(5))
		next("after the outage", 1, time.Time{})

		server.CloseWatches()
		server.Put(widgets, "n", "c", spec(6))
		next("after a watch that the server ended in order", 1, time.Time{})
	})
}
