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
	ready, starved := began, false
	for i := range kills {
		if !to.daemon.alive() {
			to.daemon.start()
		}
		if time.Since(ready) > 15*time.Second { // on a slow machine, no run may have got anywhere
			to.daemon.ready(ctx)
			starved = to.starved(ctx, ready) || starved
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
	if j := to.judge(ctx); len(j.gaps) > 0 && !starved { // each of which is a fault, too, unless the judge errs
		t.Errorf("there are %d gaps, though the server was well", len(j.gaps))
	}
}

// starved notes that the daemon has recorded nothing for so long that the server, which keeps at least 75 s
// of history, may have forgotten what the daemon missed.
func (to *torture) starved(ctx context.Context, since time.Time) bool {
	to.Helper()
	if time.Since(since) < time.Minute {
		return false
	}
	to.Logf("the machine is slow: from %s to %s, no run got as far as to record", clock(since), clock(time.Now()))
	floor, err := newest(ctx, to.witness.api)
	if err != nil {
		to.Fatal(err)
	}
	to.observer.begin(&deed{what: "no run gets as far as to record", began: since, ended: time.Now(), forgets: true, floor: floor})
	return true
}
