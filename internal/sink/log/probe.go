package log

import "context"

// Probe implements sink.Prober: stdout needs no check.
func (s *Sink) Probe(context.Context) error {
	return nil
}
