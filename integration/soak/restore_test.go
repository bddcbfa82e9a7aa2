package soak

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/informer"
)

// TestRestoredBackup restores an older state of etcd. The server then has another history under the same
// identity: versions that were shown no longer exist, and their numbers are reused.
func TestRestoredBackup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute+time.Duration(here.size)*20*time.Millisecond)
	defer cancel()
	w, another := here, rules{history: true}
	backup := filepath.Join(t.TempDir(), "backup")
	if err := w.restartEtcd(ctx, backup); err != nil {
		t.Fatal(err)
	}

	// One cluster runs all the time; one is stopped, with a checkpoint of a history that will be replaced.
	live := w.keeper(ctx, t, "", another)
	live.start(t)
	behind := filepath.Join(t.TempDir(), "state")
	k := w.keeper(ctx, t, behind, rules{})
	k.start(t)
	k.sync(ctx)
	w.writeMeanwhile(ctx, t, 30)
	k.sync(ctx) // marks come last: the newest objects will not exist
	live.sync(ctx)
	k.awaitEqual(ctx)
	left := k.end()
	ahead := copyDir(t, behind)
	version := must(w.version(ctx))(t)

	if err := w.restore(ctx, backup); err != nil {
		t.Fatal(err)
	}
	if now := must(w.version(ctx))(t); !older(now, version) {
		t.Fatalf("the server is at %s, and was at %s before the backup was restored", now, version)
	}

	t.Run("running", func(t *testing.T) {
		live.T = t
		live.sync(ctx)
		live.awaitEqual(ctx)
		live.noticed(2)
	})
	t.Run("stopped, the server is behind", func(t *testing.T) {
		k := w.keeper(ctx, t, behind, another)
		for i, state := range k.loaded(ctx) {
			if err := differ(state, left[i]); err != nil {
				t.Errorf("%s: the loaded state differs from the saved one: %v", k.views[i].label(), err)
			}
		}
		k.sync(ctx)
		k.awaitEqual(ctx)
		k.noticed(2)
		k.end()
	})
	t.Run("stopped, the server is ahead", func(t *testing.T) {
		c := w.churn(ctx, 31)
		err := clustertest.Poll(ctx, 100*time.Millisecond, func() error {
			now, err := w.version(ctx)
			if err == nil && !older(version, now) {
				err = errors.New("the server is at " + now + ", want it behind " + version)
			}
			return err
		})
		c.stop()
		if err != nil {
			t.Fatal(err)
		}
		k := w.keeper(ctx, t, ahead, another)
		k.loaded(ctx)
		k.sync(ctx)
		k.awaitEqual(ctx)
		k.noticed(2)
		k.end()
	})
}

// noticed checks that every stream has noticed the replaced history.
func (k *keeper) noticed(epoch int64) {
	k.Helper()
	for _, v := range k.views {
		for _, st := range v.source().Status() {
			if st.Epoch < epoch {
				k.Errorf("%s: %v is in epoch %d", v.label(), st.Stream, st.Epoch)
			}
		}
	}
	reasons := k.counters.of("gap:"+informer.ReasonHistoryChanged) + k.counters.of("gap:"+informer.ReasonUnverified)
	if reasons == 0 {
		k.Error(fmt.Errorf("no gap for it: %v", k.counters.n))
	}
}
