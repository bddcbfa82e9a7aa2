package otlp

import (
	"strings"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/internal/sink"
)

// entry is a message with its log record.
type entry struct {
	message sink.Message
	record  *logspb.LogRecord
	place   place
	size    int
}

// framing bounds the bytes that protobuf adds to a nested message: a tag and a length.
const framing = 6

// entries returns the first messages that fit into one request, at least one. It returns the error of the first
// message if that has no record; a later one without a record is left for the next call.
func (s *Sink) entries(ms []sink.Message) ([]entry, error) {
	var out []entry
	total := 0
	for i, m := range ms {
		r, err := record(m, s.o.Body)
		if err != nil {
			if i == 0 {
				return nil, err
			}
			break
		}
		e := entry{message: m, record: r, place: placeOf(m.Event)}
		e.size = proto.Size(r) + framing
		if i == 0 || e.place != out[i-1].place {
			e.size += s.envelopeSize(e.place)
		}
		if total += e.size; i > 0 && total > int(s.o.MaxBatchBytes) {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

// envelopeSize returns the size of the messages around the records of a place.
func (s *Sink) envelopeSize(p place) int {
	return proto.Size(&collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{s.group(p)}}) + 2*framing
}

func (s *Sink) group(p place) *logspb.ResourceLogs {
	name, version, _ := strings.Cut(s.agent, "/")
	return &logspb.ResourceLogs{
		Resource:  &resourcepb.Resource{Attributes: p.resource(s.o.Resource)},
		ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: name, Version: version}}},
	}
}

// request groups consecutive records of the same place, which keeps their order.
func (s *Sink) request(es []entry) *collogspb.ExportLogsServiceRequest {
	req := &collogspb.ExportLogsServiceRequest{}
	var records *logspb.ScopeLogs
	for i, e := range es {
		if i == 0 || e.place != es[i-1].place {
			g := s.group(e.place)
			req.ResourceLogs = append(req.ResourceLogs, g)
			records = g.ScopeLogs[0]
		}
		records.LogRecords = append(records.LogRecords, e.record)
	}
	return req
}

// bodyLimit returns the maximum body of a message, given that a request with this message alone, of so many bytes,
// exceeds a limit.
func bodyLimit(body, request, limit int) int {
	return max(1, int(float64(body)*float64(limit)/float64(request)*0.95))
}
