package clustertest

import (
	"context"
	"fmt"
	"time"
)

// Poll calls f at once and then at every interval until it returns nil. When ctx ends, Poll returns the cause
// and the last error of f.
func Poll(ctx context.Context, every time.Duration, f func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
