package otlp

import (
	"context"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
)

// Probe implements sink.Prober: it exports a request without records.
func (s *Sink) Probe(ctx context.Context) error {
	_, err := s.transport.export(ctx, &collogspb.ExportLogsServiceRequest{})
	return err
}
