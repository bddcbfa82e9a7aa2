package nats

import (
	"context"
)

// Probe implements sink.Prober: it connects and logs in.
func (s *Sink) Probe(ctx context.Context) error {
	_, err := s.conn.Get(ctx)
	return s.shown(err)
}
