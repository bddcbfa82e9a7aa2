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

// TestStrictFirstList: a first list that comes faster than it is taken ends a strict feed. Opened anew
// with what was kept, again and again, it comes to its end: each object is told once, and nothing is
// taken for lost. So it does where every batch is larger than the budget.
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
		told, opened, live := map[string]int{}, 0, false
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
						t.Fatalf("told %s", line(d))
					}
					told[d.Key.Name]++
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
		if len(told) != objects+2 {
			t.Errorf("%d objects were told, want %d", len(told), objects+2)
		}
		for name, n := range told {
			if n != 1 {
				t.Errorf("%s was told %d times", name, n)
			}
		}
	})
}
