package daemon

import (
	"context"
	"fmt"
	"time"
)

// placeEvery is the interval of looking whether the journal's file is still at its path.
const placeEvery = 5 * time.Second

// watchPlace ends the daemon with an error if its journal's file is removed or replaced: it would record into a file that
// nobody can read afterwards. After a restart it continues in the file at the path, or in a new one. Network file systems may
// number their files anew, so there it does nothing.
func (d *daemon) watchPlace(ctx context.Context) error {
	if d.o.Network {
		return nil
	}
	tick := time.NewTicker(placeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := d.journal.CheckPlace(); err != nil {
			err = fmt.Errorf("%w; start tattler run again to record into a file there", err)
			d.o.Log.Error("the journal's file is gone", "error", err)
			return err
		}
	}
}
