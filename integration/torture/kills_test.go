package torture

import (
	"context"
	"testing"
	"time"
)

// TestTortureKills kills the daemon repeatedly while the server works. The server keeps what the daemon missed,
// so the journal must have every version and no gap.
func TestTortureKills(t *testing.T) {
	t.Parallel() // to tests that leave the servers alone
	kills := int(kills)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute+time.Duration(kills)*time.Minute)
	defer cancel()
	to := newTorture(ctx, t, 0)
	to.all.calmDown()
	to.some.calmDown()
	to.daemon.ready(ctx)
	if err := to.watcher.begin(ctx); err != nil {
		t.Fatal(err)
	}
	began, before := time.Now(), to.hands.taken.Load()
	ready, starved := began, false
	for i := range kills {
		if !to.daemon.alive() {
			to.daemon.start()
		}
		if time.Since(ready) > 15*time.Second { // on a slow machine, it may be that no run recorded anything
			to.daemon.ready(ctx)
			starved = to.starved(ctx, ready) || starved
			ready = time.Now()
		}
		pause(ctx, to.between(300, 3000))
		to.daemon.kill()
		if (i+1)%25 == 0 {
			t.Logf("%d of %d kills, %d writes so far", i+1, kills, to.hands.taken.Load())
		}
	}
	t.Logf("%d kills at %.0f writes a second of at most %.0f", kills, float64(to.hands.taken.Load()-before)/time.Since(began).Seconds(), to.pace)
	to.drain(ctx)
	if j := to.judge(ctx); len(j.gaps) > 0 && !starved { // each gap is also a fault, unless the judge errs
		t.Errorf("there are %d gaps, although the server worked", len(j.gaps))
	}
}

// starved records that the daemon has not recorded anything for so long that the server, which keeps at least
// 75 s of history, may have forgotten changes that the daemon missed.
func (to *torture) starved(ctx context.Context, since time.Time) bool {
	to.Helper()
	if time.Since(since) < time.Minute {
		return false
	}
	to.Logf("the machine is slow: from %s to %s, no run recorded anything", clock(since), clock(time.Now()))
	floor, err := newest(ctx, to.watcher.api)
	if err != nil {
		to.Fatal(err)
	}
	to.observer.begin(&action{what: "no run records anything", began: since, ended: time.Now(), forgets: true, floor: floor})
	return true
}
