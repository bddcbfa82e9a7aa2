package informer_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestTimesOfKilledConsumers: a consumer that is killed while it catches up, or while a list is compared, resumes from a
// state that is older than its last batch. Each change then still happened after the moment that its delta names.
func TestTimesOfKilledConsumers(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
				r := rand.New(rand.NewPCG(seed, 7))
				k.firstRun(c)
				written := map[string]time.Time{} // by version
				write := func(n int) {
					for range n {
						<-time.After(time.Duration(1+r.IntN(5000)) * time.Millisecond)
						server.Put(widgets, "n", "o"+strconv.Itoa(r.IntN(900)), spec(r.Uint64()))
						written[server.Version()] = time.Now()
					}
				}
				kills, late := 0, 0
				for round := range 6 {
					if round < 4 {
						write(900 + r.IntN(300)) // more than one batch
					}
					if relist := r.IntN(3) == 0; relist {
						server.Compact()
					}
					_, f := k.keep(c, feed.Options{})
					for batches, end := 0, r.IntN(4); batches < end || round == 5; batches++ {
						b, err := f.Next(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						k.take(b)
						for _, d := range b.Deltas {
							at := written[d.New.ResourceVersion]
							if d.After.IsZero() {
								t.Errorf("%s was written at %v and seen at %v: not late?", line(d), at, d.At)
							}
							if !d.After.Before(at) || d.At.Before(at) {
								t.Fatalf("%s was written at %v, not between %v and %v", line(d), at, d.After, d.At)
							}
							late++
						}
						if b.Phase == feed.Live {
							break
						}
						kills++
					}
					f.Close()
				}
				if kills < 3 || late < 500 {
					t.Errorf("%d kills in a catch-up, %d late changes: the test shows nothing", kills, late)
				}
			})
		})
	}
}
