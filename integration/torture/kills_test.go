package torture

import (
	"context"
	"testing"
	"time"
)

// TestTortureKills kills the daemon again and again while the server is well. The server has whatever the
// daemon missed, so its journal must have every version, and no gap.
func TestTortureKills(t *testing.T) {
	t.Parallel() // to what leaves the servers alone
	kills := int(kills)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(kills)*20*time.Second)
	defer cancel()
	to := newTorture(ctx, t, 0)
	to.all.soothe()
	to.some.soothe()
	to.daemon.ready(ctx)
	if err := to.witness.begin(ctx); err != nil {
		t.Fatal(err)
	}
	began, before := time.Now(), to.hands.taken.Load()
	ready := began
	for i := range kills {
		if !to.daemon.alive() {
			to.daemon.start()
		}
		// The server keeps at least 75 s of history. On a slow machine no run might get as far as to record
		// any within that.
		if time.Since(ready) > 15*time.Second {
			to.daemon.ready(ctx)
			ready = time.Now()
		}
		rest(ctx, to.between(300, 3000))
		to.daemon.kill()
		if (i+1)%25 == 0 {
			t.Logf("%d of %d kills, %d writes so far", i+1, kills, to.hands.taken.Load())
		}
	}
	t.Logf("%d kills at %.0f writes a second of at most %.0f", kills, float64(to.hands.taken.Load()-before)/time.Since(began).Seconds(), to.pace)
	to.settle(ctx)
	if j := to.judge(ctx); len(j.gaps) > 0 { // each of which is a fault, too, unless the judge errs
		t.Errorf("there are %d gaps, though the server was well", len(j.gaps))
	}
}
