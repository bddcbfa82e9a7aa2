package mqtt

import (
	"context"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Probe implements sink.Prober. It does not log in: with its client id, that would end the session of a running daemon.
func (s *Sink) Probe(ctx context.Context) error {
	return s.mask.Wrap("reach "+s.place, sink.ProbeTCP(ctx, s.url.HostPort, s.tls))
}
