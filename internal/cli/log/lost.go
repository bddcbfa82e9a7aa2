package log

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/history"
)

const (
	// reconnectEvery is how often -f tries to reach a daemon that does not answer, and reconnectFor how long.
	reconnectEvery = 2 * time.Second
	reconnectFor   = 2 * time.Minute
)

// catchUp shows the changes that were added to the journal. While a daemon in the cluster cannot be reached, because the
// API server or the daemon restarts, it tries again for a while, from the first change that was not shown.
func (t *lister) catchUp(ctx context.Context) error {
	var since time.Time // of the first failure after the last progress
	lost := false
	for {
		from := t.read
		err := t.listNew(ctx)
		var away *history.UnavailableError
		now := time.Now()
		if t.read > from {
			since = now
		}
		switch {
		case err == nil && lost:
			fmt.Fprintln(t.o.IO.Err, "the daemon answers again")
			return nil
		case err == nil || ctx.Err() != nil || !errors.As(err, &away):
			return err
		case !lost:
			lost, since = true, now
			fmt.Fprintf(t.o.IO.Err, "%s; trying again for %s\n", terminal.Line(why(away)), reconnectFor)
		case now.Sub(since) >= reconnectFor:
			err = fmt.Errorf("the daemon has not answered for %s: %w", reconnectFor, err)
			return errors.Join(err, t.out.Flush(t.end())) // what was read is shown
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reconnectEvery):
		}
	}
}

// why says briefly why a daemon cannot be read from.
func why(away *history.UnavailableError) string {
	var lost *url.Error // a request that was not answered
	if errors.As(away, &lost) {
		return fmt.Sprintf("the daemon does not answer (%v)", lost.Err)
	}
	return away.Error()
}
