package sinks

import (
	"context"
	"fmt"
	"net"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // requests are compressed

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/otlp"
)

// logs is a collector that counts and discards records.
type logs struct {
	collogspb.UnimplementedLogsServiceServer
	arrived func(int)
}

// Export implements the service of OTLP.
func (l *logs) Export(_ context.Context, req *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	n := 0
	for _, r := range req.GetResourceLogs() {
		for _, s := range r.GetScopeLogs() {
			n += len(s.GetLogRecords())
		}
	}
	l.arrived(n)
	return &collogspb.ExportLogsServiceResponse{}, nil
}

func openOTLP(_ context.Context, _ string, arrived func(int)) (*place, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer()
	collogspb.RegisterLogsServiceServer(server, &logs{arrived: arrived})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return &place{
		sink: func() (sink.Sink, error) {
			return otlp.New(agent, otlp.Options{Endpoint: "http://" + l.Addr().String()})
		},
		close: func() error { server.Stop(); return <-served },
	}, nil
}
