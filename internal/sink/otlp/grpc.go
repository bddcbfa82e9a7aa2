package otlp

import (
	"context"
	"crypto/tls"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// grpcTransport exports over gRPC.
type grpcTransport struct {
	s      *Sink
	header metadata.MD
	conn   sink.Lazy[*grpc.ClientConn]
}

// maxReply is the maximum length of a gRPC reply. The client's error for a longer reply has the same code and wording
// as the receiver's error for a request that is too long; only this odd limit tells them apart.
const maxReply = maxRead + 1

func newGRPC(s *Sink, config *tls.Config) *grpcTransport {
	creds := insecure.NewCredentials()
	if s.url.Scheme == "https" {
		creds = credentials.NewTLS(config)
	}
	calls := []grpc.CallOption{grpc.MaxCallRecvMsgSize(maxReply)}
	if s.o.Compression == Gzip {
		calls = append(calls, grpc.UseCompressor(gzip.Name))
	}
	header := metadata.MD{}
	for name, value := range headers(s) {
		header.Set(name, value)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithUserAgent(s.agent), grpc.WithDefaultCallOptions(calls...),
		// The pump retries, so the policies of the server and of DNS are ignored.
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
	}
	return &grpcTransport{s: s, header: header, conn: sink.Lazy[*grpc.ClientConn]{
		Open: func(context.Context) (*grpc.ClientConn, error) { return grpc.NewClient(s.url.Host, options...) },
		Free: func(_ context.Context, c *grpc.ClientConn) error { return c.Close() },
	}}
}

func (c *grpcTransport) export(ctx context.Context, req *collogspb.ExportLogsServiceRequest) (answer, error) {
	conn, err := c.conn.Get(ctx)
	if err != nil {
		return answer{}, c.s.failed(err)
	}
	ctx = metadata.NewOutgoingContext(ctx, c.header)
	resp, err := collogspb.NewLogsServiceClient(conn).Export(ctx, req)
	if err == nil {
		return answer{resp.GetPartialSuccess().GetRejectedLogRecords(), c.s.mask.Excerpt([]byte(resp.GetPartialSuccess().GetErrorMessage()))}, nil
	}
	st := status.Convert(err)
	if replyTooLong(st, proto.Size(req)) {
		return answer{}, nil // a receiver sends a message only if it took the request
	}
	if slices.Contains(broken, st.Code()) {
		c.conn.Reset(conn) // a new connection dials at once; this one would back off longer after each failure
	}
	return answer{}, c.s.classify(st, nil)
}

// broken lists the codes that the client also uses for a missing or unresponsive connection.
var broken = []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown}

func (c *grpcTransport) close() { _ = c.conn.Close(context.Background()) } // it fails only if it is closed

// sizes matches gRPC's error for a message that is too long: its size, which may be missing, and the limit.
var sizes = regexp.MustCompile(`larger than max \(?(?:(\d+) vs\.? )?(\d+)`)

// replyTooLong reports whether the reply, not the request, is too long.
func replyTooLong(st *status.Status, request int) bool {
	m := sizes.FindStringSubmatch(st.Message())
	return st.Code() == codes.ResourceExhausted && m != nil && m[2] == strconv.Itoa(maxReply) && m[1] != strconv.Itoa(request)
}

// classify turns a status into the error of Send. The status came by gRPC, or stands for an HTTP response; err then
// describes the response, else it is nil.
func (s *Sink) classify(st *status.Status, err error) error {
	said := s.mask.Excerpt([]byte(st.Message()))
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
		if aboutSetup.MatchString(said) {
			return fmt.Errorf("%w (it seems to be about endpoint or headers, not about a record)", err)
		}
		return &sink.PermanentError{Err: err}
	case codes.ResourceExhausted:
		if m := sizes.FindStringSubmatch(said); m != nil {
			limit, _ := strconv.Atoi(m[2]) // 0: unknown
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

// aboutSetup matches errors with the code of an invalid record that are about the request instead, so that every
// request has them: plain HTTP (in the words of Go's servers and nginx), a missing or wrong certificate, or a missing
// tenant header.
var aboutSetup = regexp.MustCompile(`(?i)ssl certificate|http request (was sent )?to (an )?https (server|port)|header|tenant|\borg ?id\b|api.?key|credential`)

// tooLong reports whether a text says that the request is too large; no code says only that. The Collector says
// "http: request body too large", with 400. A header that is too large does not count: every request has it.
func tooLong(said string) bool {
	said = strings.ToLower(said)
	return !strings.Contains(said, "header") && slices.ContainsFunc([]string{"too large", "larger than max", "exceeds max", "message size"}, func(words string) bool {
		return strings.Contains(said, words)
	})
}

// hints say what to do about a code.
var hints = map[codes.Code]string{
	codes.Unauthenticated:   "credentials are missing or wrong: see headers",
	codes.PermissionDenied:  "the credentials lack a right: see headers",
	codes.Unimplemented:     "the endpoint takes no logs: is it an OTLP receiver for this protocol?",
	codes.NotFound:          "is the endpoint right?",
	codes.ResourceExhausted: "a limit or a quota of the receiver",
}
