package deliver

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// backoff returns the wait after a number of consecutive failures, the first being 1; at least as long as the
// receiver asks for.
func (r Retry) backoff(failures int, err error) time.Duration {
	d := r.Max
	if shift := failures - 1; shift < 32 && r.Min < r.Max>>shift {
		d = r.Min << shift
	}
	d -= time.Duration(rand.Int64N(int64(d)/2 + 1))
	var wish *sink.RetryAfterError
	if errors.As(err, &wish) {
		d = max(d, min(wish.After, maxRetryAfter))
	}
	return d
}
