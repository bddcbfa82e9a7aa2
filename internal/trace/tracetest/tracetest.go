// Package tracetest reads what trace exporters send, for receivers in tests.
package tracetest

import (
	"compress/gzip"
	"fmt"
	"io"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Read reads the body of a request. raw is the uncompressed body, as far as it can be read.
func Read(body io.Reader) (request *coltracepb.ExportTraceServiceRequest, raw []byte, err error) {
	request = &coltracepb.ExportTraceServiceRequest{}
	z, err := gzip.NewReader(body)
	if err == nil {
		raw, err = io.ReadAll(z)
	}
	if err == nil {
		err = proto.Unmarshal(raw, request)
	}
	if err != nil {
		return request, raw, fmt.Errorf("read traces: %w", err)
	}
	return request, raw, nil
}

// Spans returns the spans of a request, in order.
func Spans(request *coltracepb.ExportTraceServiceRequest) (all []*tracepb.Span) {
	for _, rs := range request.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			all = append(all, ss.GetSpans()...)
		}
	}
	return all
}
