package informer_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestStrictFirstList: a first list that arrives faster than it is taken ends a strict feed. Reopened repeatedly with
// the kept state, the list completes: each object is delivered once, and nothing counts as lost. The same holds if every
// batch is larger than the budget.
func TestStrictFirstList(t *testing.T) {
	for _, budget := range []int64{300_000, 1} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) { strictFirstList(t, budget) })
	}
}

func strictFirstList(t *testing.T, budget int64) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		const objects = 3000
		for i := range objects {
			server.Put(widgets, "n", fmt.Sprintf("w%04d", i), spec(i))
		}
		delivered, opened, live := map[string]int{}, 0, false
		for ; !live && opened < 400; opened++ {
			s, f := k.keep(c, feed.Options{Strict: true, Budget: budget})
			for {
				b, err := f.Next(t.Context())
				if errors.Is(err, feed.ErrBehind) {
					break
				}
				if err != nil || b.Gap != nil {
					t.Fatalf("neither batches without a gap nor the end: %+v, %v", b.Gap, err)
				}
				k.take(b)
				for _, d := range b.Deltas {
					if d.Op != informer.Added {
						t.Fatalf("delivered %s", line(d))
					}
					delivered[d.Key.Name]++
				}
				if live = b.Phase == feed.Live; live {
					break
				}
				synctest.Wait() // the list goes on meanwhile
			}
			s.Close()
		}
		if !live || opened < 2 {
			t.Errorf("live %v after the feed was opened %d times", live, opened)
		}
		if len(delivered) != objects+2 {
			t.Errorf("%d objects were delivered, want %d", len(delivered), objects+2)
		}
		for name, n := range delivered {
			if n != 1 {
				t.Errorf("%s was delivered %d times", name, n)
			}
		}
	})
}
