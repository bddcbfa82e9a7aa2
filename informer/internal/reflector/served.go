package reflector

import (
	"context"
	"errors"
)

// AwaitServed returns nil once the kind of a parked stream is served, so that Run may begin again, or
// the error of ctx when that ends. Less and less often, it asks for a list of one object, of which the
// sink hears nothing. It is not for a Reflector that runs.
func (r *Reflector) AwaitServed(ctx context.Context) error {
	for n := 1; ; n++ {
		sleep(ctx, doubled(r.Timing.Unserved, n, r.Timing.MaxUnserved))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := r.peek(ctx); err == nil || errors.Is(err, ErrRewritten) { // which needs a list to be
			return nil
		}
	}
}
