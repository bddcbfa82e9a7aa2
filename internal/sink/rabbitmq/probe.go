package rabbitmq

import (
	"context"
)

// Probe implements sink.Prober: it connects and logs in.
func (s *Sink) Probe(ctx context.Context) error {
	if _, err := s.conn.Get(ctx); err != nil {
		return s.failed(ctx, nil, err)
	}
	return nil
}
