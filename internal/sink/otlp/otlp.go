// Package otlp is the sink that exports each change as a log record over OTLP, by gRPC or HTTP, so that it can
// replace the k8sobjects receiver of the OpenTelemetry Collector.
//
// A request that is taken acknowledges all its records. A partial success that rejects some does not say
// which, and must not be sent again as it was: its records are sent one by one, and one that is rejected alone
// is permanent; those that had been taken come twice. A request that the receiver calls invalid
// (INVALID_ARGUMENT, 400, 422) or too long is halved, down to the one that is to blame.
//
// Everything else passes: no connection, no answer in time, the codes that the protocol calls retryable, with
// the wish in RetryInfo or Retry-After. Here we are more patient than the protocol, which has clients drop
// on every other code: missing rights, a wrong path, UNIMPLEMENTED are no message's fault, and neither are
// INTERNAL, UNKNOWN and 500, which is what receivers answer whose own receiver is in trouble, nor is
// RESOURCE_EXHAUSTED without a RetryInfo. Redirects are not followed.
//
// A repeat is a record with the same attribute tattler.id: receivers do not look for repeats, so whoever reads
// the records has to.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
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
	place     string // the URL, as far as it may be shown
	blot      *sink.Blot
	transport transport
	suspect   string // the id of the message that was refused last: it goes alone, so that no other comes again

	mu     sync.Mutex // Close may come from another goroutine than Send
	closed bool
}

// transport is a protocol: it sends one request, and closes what it has opened.
type transport interface {
	export(ctx context.Context, req *collogspb.ExportLogsServiceRequest) (answer, error)
	close()
}

// answer is one that takes a request, but perhaps not all records.
type answer struct {
	rejected int64
	said     string
}

// most is how much of an answer is read: an answer says a few words.
const most = 64 << 10

// New makes a sink; it reads the files of TLS, and connects with the first Send. The agent is the
// User-Agent, such as tattler/v1.2.3, and the scope of the records.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("otlp sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), agent: agent, blot: blotter(o)}
	s.url, _ = parseEndpoint(o.Endpoint, s.o.Protocol)
	s.place = s.url.Scheme + "://" + s.url.Host
	config, err := s.o.TLS.Client()
	if err != nil {
		return nil, fmt.Errorf("otlp sink: tls: %w", err)
	}
	if s.o.Protocol == HTTP {
		s.transport = newWeb(s, config)
	} else {
		s.transport = newCaller(s, config)
	}
	return s, nil
}

func (s *Sink) String() string { return "otlp " + s.place }

// Close closes the connection.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.transport.close()
	return nil
}

// Send exports messages, as many to a request as fit into one.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, fmt.Errorf("export to %s: the sink is closed", s.place)
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
			if isBlame(err) {
				s.suspect = ms[acked].ID
			}
			return acked, err
		}
	}
	return acked, nil
}

// isBlame tells whether an error is about the message.
func isBlame(err error) bool {
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	return errors.As(err, &permanent) || errors.As(err, &long)
}

// deliver exports entries, in one request if the receiver takes it.
func (s *Sink) deliver(ctx context.Context, es []entry) (acked int, err error) {
	a, err := s.export(ctx, es)
	switch {
	case err == nil && a.rejected <= 0:
		return len(es), nil
	case err == nil && len(es) == 1:
		return 0, &sink.PermanentError{Err: s.failed(fmt.Errorf("the receiver rejected the record: %s", a.said))}
	case err == nil: // some were taken: each part that is sent again repeats them, so only once
		return s.parts(ctx, es, 1)
	case isBlame(err) && len(es) > 1:
		return s.parts(ctx, es, (len(es)+1)/2)
	}
	return 0, err
}

// parts delivers entries so many at a time.
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
			Limit: room(body, size, limit),
			Err:   s.failed(fmt.Errorf("the record has %d bytes, more than maxBatchBytes (%d)", size, limit)),
		}
	}
	deadline := time.Now().Add(s.o.Timeout)
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	a, err := s.transport.export(within, req)
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil: // ours: the client's own words for it do not tell
		return answer{}, s.failed(fmt.Errorf("%w before there was an answer", context.Cause(ctx)))
	case !time.Now().Before(deadline) && !isBlame(err): // the client may see that before the context does
		return answer{}, s.failed(fmt.Errorf("no answer within %s (timeout)", s.o.Timeout))
	}
	var long *sink.TooLargeError
	if errors.As(err, &long) && len(es) == 1 && long.Limit > 0 { // of the request, so far
		return answer{}, &sink.TooLargeError{Limit: room(len(es[0].message.Body), size, long.Limit), Err: long.Err}
	}
	return answer{}, err
}

// failed says where, and shows no credential.
func (s *Sink) failed(err error) error {
	return fmt.Errorf("export to %s: %w", s.place, s.blot.Error(err))
}
