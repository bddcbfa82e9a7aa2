package log

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

const (
	// reconnectEvery is how often -f tries to reach a daemon that does not answer, and reconnectFor how long.
	reconnectEvery = 2 * time.Second
	reconnectFor   = 2 * time.Minute
)

// lastChange returns the journal's newest sequence number. While a daemon in the cluster cannot be reached, because the
// API server or the daemon restarts, it tries again for a while.
func (t *lister) lastChange(ctx context.Context) (int64, error) {
	var since time.Time // of the first failure
	for {
		last, err := t.journal.Last(ctx)
		var lost *url.Error // a request that was not answered
		now := time.Now()
		switch {
		case err == nil && !since.IsZero():
			fmt.Fprintln(t.o.IO.Err, "the daemon answers again")
			return last, nil
		case err == nil || ctx.Err() != nil || !errors.As(err, &lost):
			return last, err
		case since.IsZero():
			since = now
			fmt.Fprintf(t.o.IO.Err, "the daemon does not answer (%s); trying again for %s\n", terminal.Line(lost.Err.Error()), reconnectFor)
		case now.Sub(since) >= reconnectFor:
			return 0, fmt.Errorf("the daemon has not answered for %s: %w", reconnectFor, err)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(reconnectEvery):
		}
	}
}
