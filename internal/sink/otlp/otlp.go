// Package otlp is the sink that exports each change as a log record over OTLP, by gRPC or HTTP, so that it can
// replace the k8sobjects receiver of the OpenTelemetry Collector.
//
// A request that the receiver takes acknowledges all its records. A partial success with rejected records does not
// say which ones, and must not be sent again unchanged: the sink sends its records one by one, and a record that is
// rejected alone is permanent. Records that had been taken arrive twice. The sink halves a request that the receiver
// calls invalid (INVALID_ARGUMENT, 400, 422) or too long, down to the record to blame.
//
// Everything else is temporary: no connection, a timeout, and the codes that the protocol calls retryable, with the
// wait of RetryInfo or Retry-After. The sink is more patient than the protocol, which has clients drop on every other
// code. Missing rights, a wrong path and UNIMPLEMENTED are not a message's fault. Neither are INTERNAL, UNKNOWN and
// 500, which receivers return if the next hop fails, nor is RESOURCE_EXHAUSTED without a RetryInfo. The sink does not
// follow redirects.
//
// A repeat is a record with the same attribute tattler.id. Receivers do not drop repeats, so the reader of the
// records has to.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink exports to a receiver.
type Sink struct {
	o         Options
	url       *url.URL
	agent     string
	place     string // scheme and host of the URL
	mask      *sink.Mask
	transport transport
	suspect   string // id of the message that was refused last: it goes alone, so that no other is repeated
	closed    atomic.Bool
}

// transport sends requests over one protocol. Close closes its connections.
type transport interface {
	export(ctx context.Context, req *collogspb.ExportLogsServiceRequest) (answer, error)
	close()
}

// answer is the reply to an accepted request, some of whose records may have been rejected.
type answer struct {
	rejected int64
	said     string
}

// maxRead bounds the part of a reply that is read.
const maxRead = 64 << 10

// New returns a sink. It reads the TLS files, and connects with the first Send. The agent, such as tattler/v1.2.3, is
// the User-Agent and the scope of the records.
func New(agent string, o Options) (*Sink, error) {
	s, err := build(agent, o)
	if err != nil {
		return nil, fmt.Errorf("otlp sink: %w", err)
	}
	return s, nil
}

func build(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Sink{o: o.withDefaults(), agent: agent, mask: newMask(o)}
	s.url, _ = parseEndpoint(o.Endpoint, s.o.Protocol)
	s.place = s.url.Scheme + "://" + s.url.Host
	config, err := s.o.TLS.Client()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	if s.o.Protocol == HTTP {
		s.transport = newHTTP(s, config)
	} else {
		s.transport = newGRPC(s, config)
	}
	return s, nil
}

func (s *Sink) String() string { return "otlp " + s.place }

// Close closes the connection.
func (s *Sink) Close(context.Context) error {
	s.closed.Store(true)
	s.transport.close()
	return nil
}

// Send exports messages, as many per request as fit.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if s.closed.Load() {
		return 0, s.failed(sink.ErrClosed)
	}
	for acked < len(ms) {
		rest := ms[acked:]
		if rest[0].ID == s.suspect {
			rest = rest[:1]
		}
		es, err := s.entries(rest)
		if err != nil {
			return acked, &sink.PermanentError{Err: fmt.Errorf("make log record: %w", err)}
		}
		n, err := s.deliver(ctx, es)
		acked += n
		if err != nil {
			if sink.BlamesMessage(err) {
				s.suspect = ms[acked].ID
			}
			return acked, err
		}
	}
	return acked, nil
}

// deliver exports entries in one request or, if the receiver does not take that, in smaller ones.
func (s *Sink) deliver(ctx context.Context, es []entry) (acked int, err error) {
	a, err := s.export(ctx, es)
	switch {
	case err == nil && a.rejected <= 0:
		return len(es), nil
	case err == nil && len(es) == 1:
		return 0, &sink.PermanentError{Err: s.failed(fmt.Errorf("the receiver rejected the record: %s", a.said))}
	case err == nil: // some were taken and each part repeats them: go straight to single records
		return s.parts(ctx, es, 1)
	case sink.BlamesMessage(err) && len(es) > 1:
		return s.parts(ctx, es, (len(es)+1)/2)
	}
	return 0, err
}

// parts delivers entries in requests of size entries.
func (s *Sink) parts(ctx context.Context, es []entry, size int) (acked int, err error) {
	for acked < len(es) {
		n, err := s.deliver(ctx, es[acked:min(acked+size, len(es))])
		acked += n
		if err != nil {
			return acked, err
		}
	}
	return acked, nil
}

// export sends one request.
func (s *Sink) export(ctx context.Context, es []entry) (answer, error) {
	req := s.request(es)
	size, limit := proto.Size(req), int(s.o.MaxBatchBytes)
	if len(es) == 1 && size > limit {
		body := len(es[0].message.Body)
		return answer{}, &sink.TooLargeError{
			Limit: bodyLimit(body, size, limit),
			Err:   s.failed(fmt.Errorf("the record has %d bytes, which exceeds maxBatchBytes (%d)", size, limit)),
		}
	}
	a, err := s.within(ctx, func(ctx context.Context) (answer, error) { return s.transport.export(ctx, req) })
	var long *sink.TooLargeError
	if errors.As(err, &long) && len(es) == 1 && long.Limit > 0 { // a limit on the request, not yet on the body
		return answer{}, &sink.TooLargeError{Limit: bodyLimit(len(es[0].message.Body), size, long.Limit), Err: long.Err}
	}
	return a, err
}

// within bounds a request by the timeout.
func (s *Sink) within(ctx context.Context, export func(context.Context) (answer, error)) (answer, error) {
	deadline := time.Now().Add(s.o.Timeout)
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	a, err := export(bounded)
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil: // the client's own error would not say so
		return answer{}, s.failed(fmt.Errorf("%w before there was an answer", context.Cause(ctx)))
	case !time.Now().Before(deadline) && !sink.BlamesMessage(err): // the client may time out before the context does
		return answer{}, s.failed(fmt.Errorf("no answer within %s (timeout)", s.o.Timeout))
	}
	return answer{}, err
}

// failed adds the destination to an error and masks credentials.
func (s *Sink) failed(err error) error {
	return s.mask.Wrap("export to "+s.place, err)
}
