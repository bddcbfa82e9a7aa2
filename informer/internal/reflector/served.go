package reflector

import (
	"context"
	"errors"
)

// AwaitServed returns nil once the kind of a parked stream is served, so that Run may begin again, or the error
// of ctx when that ends. At growing intervals it lists one object; the sink does not see it. It must not be
// called while Run runs.
func (r *Reflector) AwaitServed(ctx context.Context) error {
	for n := 1; ; n++ {
		sleep(ctx, doubled(r.Timing.Unserved, n, r.Timing.MaxUnserved))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := r.peek(ctx); err == nil || errors.Is(err, ErrRewritten) { // another history only needs a list
			return nil
		}
	}
}
