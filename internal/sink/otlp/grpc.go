package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/internal/sink"
)

// caller is gRPC.
type caller struct {
	s       *Sink
	options []grpc.DialOption
	header  metadata.MD

	mu     sync.Mutex
	conn   *grpc.ClientConn // nil where there is none
	closed bool
}

// longest is how long an answer of gRPC may be. The client's error for a longer one has the same code and
// text as the receiver's for a request that is too long for it; nobody else has an odd limit.
const longest = most + 1

func newCaller(s *Sink, config *tls.Config) *caller {
	creds := insecure.NewCredentials()
	if s.url.Scheme == "https" {
		creds = credentials.NewTLS(config)
	}
	calls := []grpc.CallOption{grpc.MaxCallRecvMsgSize(longest)}
	if s.o.Compression == Gzip {
		calls = append(calls, grpc.UseCompressor(gzip.Name))
	}
	header := metadata.MD{}
	for name, value := range headers(s) {
		header.Set(name, value)
	}
	return &caller{s: s, header: header, options: []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithUserAgent(s.agent), grpc.WithDefaultCallOptions(calls...),
		// The pump tries again: what the server or DNS has to say about that is not for us.
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
	}}
}

func (c *caller) export(ctx context.Context, req *collogspb.ExportLogsServiceRequest) (answer, error) {
	conn, err := c.connect()
	if err != nil {
		return answer{}, c.s.failed(err)
	}
	ctx = metadata.NewOutgoingContext(ctx, c.header)
	resp, err := collogspb.NewLogsServiceClient(conn).Export(ctx, req)
	if err == nil {
		return answer{resp.GetPartialSuccess().GetRejectedLogRecords(), c.s.blot.Excerpt([]byte(resp.GetPartialSuccess().GetErrorMessage()))}, nil
	}
	st := status.Convert(err)
	if answersTooMuch(st, proto.Size(req)) {
		return answer{}, nil // only who takes a request sends a message
	}
	if slices.Contains(broken, st.Code()) {
		c.drop() // a new one connects at once: this one would wait longer after each failure
	}
	return answer{}, c.s.judge(st, nil)
}

// broken are the codes that the client also uses where there is no connection, or one that does not answer.
var broken = []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown}

func (c *caller) connect() (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil || c.closed {
		return c.conn, closedError(c.closed)
	}
	conn, err := grpc.NewClient(c.s.url.Host, c.options...)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	return conn, nil
}

func closedError(closed bool) error {
	if closed {
		return errors.New("the sink is closed")
	}
	return nil
}

func (c *caller) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // it fails where it is closed
		c.conn = nil
	}
}

func (c *caller) close() {
	c.drop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// sizes are what gRPC says of a message that is too long: its size, which may be missing, and the limit.
var sizes = regexp.MustCompile(`larger than max \(?(?:(\d+) vs\.? )?(\d+)`)

// answersTooMuch tells whether it is the answer that is too long.
func answersTooMuch(st *status.Status, request int) bool {
	m := sizes.FindStringSubmatch(st.Message())
	return st.Code() == codes.ResourceExhausted && m != nil && m[2] == strconv.Itoa(longest) && m[1] != strconv.Itoa(request)
}

// judge makes an error of a status, which came by gRPC or is what an HTTP answer means; told then says what that
// was.
func (s *Sink) judge(st *status.Status, told error) error {
	said := s.blot.Excerpt([]byte(st.Message()))
	err := told
	if err == nil {
		err = fmt.Errorf("%s: %s", st.Code(), said)
	}
	if hint := hints[st.Code()]; hint != "" {
		err = fmt.Errorf("%w (%s)", err, hint)
	}
	err = s.failed(err)
	switch st.Code() {
	case codes.InvalidArgument, codes.AlreadyExists:
		if tooLong(said) {
			return &sink.TooLargeError{Err: err}
		}
		if setUp.MatchString(said) {
			return fmt.Errorf("%w (it seems to be about endpoint or headers, and not about a record)", err)
		}
		return &sink.PermanentError{Err: err}
	case codes.ResourceExhausted:
		if m := sizes.FindStringSubmatch(said); m != nil {
			limit, _ := strconv.Atoi(m[2]) // 0 means that it did not say
			return &sink.TooLargeError{Limit: limit, Err: err}
		}
		if tooLong(said) {
			return &sink.TooLargeError{Err: err}
		}
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
			return &sink.RetryAfterError{After: info.GetRetryDelay().AsDuration(), Err: err}
		}
	}
	return err
}

// setUp is what receivers say with the same code of how they are asked, and so of each request: without TLS, as
// Go's servers and nginx say it, without a certificate or with a wrong one, or without the header that names a tenant.
var setUp = regexp.MustCompile(`(?i)ssl certificate|http request (was sent )?to (an )?https (server|port)|header|tenant|\borg ?id\b|api.?key|credential`)

// tooLong tells whether a text says so: there is no code that says only that. The Collector's words are
// "http: request body too large", with 400. What is too large may as well be a header, which each request has.
func tooLong(said string) bool {
	said = strings.ToLower(said)
	return !strings.Contains(said, "header") && slices.ContainsFunc([]string{"too large", "larger than max", "exceeds max", "message size"}, func(words string) bool {
		return strings.Contains(said, words)
	})
}

// hints say what to do.
var hints = map[codes.Code]string{
	codes.Unauthenticated:   "the receiver wants credentials, or others: see headers",
	codes.PermissionDenied:  "the credentials lack a right: see headers",
	codes.Unimplemented:     "the endpoint takes no logs: is it a receiver for OTLP by this protocol?",
	codes.NotFound:          "is the endpoint right?",
	codes.ResourceExhausted: "a limit or a quota of the receiver's",
}
