package webhook

import (
	"context"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Probe implements sink.Prober: it requests the root of the receiver's host.
func (s *Sink) Probe(ctx context.Context) error {
	return s.failed(sink.ProbeURL(ctx, s.client, s.o.URL))
}
