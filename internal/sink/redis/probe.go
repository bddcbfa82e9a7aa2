package redis

import (
	"context"
)

// Probe implements sink.Prober: it connects and logs in.
func (s *Sink) Probe(ctx context.Context) error {
	if _, err := s.conn.Get(ctx); err != nil {
		return s.refused(ctx, err)
	}
	return nil
}
