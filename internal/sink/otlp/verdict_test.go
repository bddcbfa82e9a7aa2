package otlp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(string) (sink.Sink, error) { return nil, errors.New("the suite is in integration/sinks/otlp") })
}

// fake is a gRPC receiver whose answers a test sets.
type fake struct {
	collogspb.UnimplementedLogsServiceServer
	answer func(ids []string) (*collogspb.ExportLogsServiceResponse, error)

	mu   sync.Mutex
	seen []string // the ids of each request
}

func (f *fake) Export(_ context.Context, req *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	ids := idsOf(req)
	f.mu.Lock()
	f.seen = append(f.seen, strings.Join(ids, " "))
	f.mu.Unlock()
	return f.answer(ids)
}

func idsOf(req *collogspb.ExportLogsServiceRequest) (ids []string) {
	for _, g := range req.ResourceLogs {
		for _, r := range g.ScopeLogs[0].LogRecords {
			for _, a := range r.Attributes {
				if a.Key == "tattler.id" {
					ids = append(ids, a.Value.GetStringValue())
				}
			}
		}
	}
	return ids
}

// serve runs a gRPC receiver for the test, and a sink for it.
func serve(t *testing.T, o Options, answer func(ids []string) (*collogspb.ExportLogsServiceResponse, error), so ...grpc.ServerOption) (*Sink, *fake) {
	t.Helper()
	f := &fake{answer: answer}
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := grpc.NewServer(so...)
	collogspb.RegisterLogsServiceServer(server, f)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) }) // until Stop
	t.Cleanup(func() { server.Stop(); running.Wait() })
	o.Endpoint = "http://" + l.Addr().String()
	return newSink(t, o), f
}

func newSink(t *testing.T, o Options) *Sink {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	s := must(New("tattler/test", o))(t)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

const (
	acknowledged = "acknowledged"
	permanent    = "permanent"
	long         = "too long"
	passing      = "passing"
)

// verdict returns the kind of an error, and its wait.
func verdict(err error) (string, time.Duration) {
	var p *sink.PermanentError
	var l *sink.TooLargeError
	var r *sink.RetryAfterError
	switch {
	case err == nil:
		return acknowledged, 0
	case errors.As(err, &p):
		return permanent, 0
	case errors.As(err, &l):
		return long, 0
	case errors.As(err, &r):
		return passing, r.After
	}
	return passing, 0
}

func ok([]string) (*collogspb.ExportLogsServiceResponse, error) {
	return &collogspb.ExportLogsServiceResponse{}, nil
}

func TestCodesOnFake(t *testing.T) {
	wait := func(c codes.Code) error {
		return must(status.New(c, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(9 * time.Second)}))(t).Err()
	}
	for _, tc := range []struct {
		err   error
		want  string
		after time.Duration
		why   string
	}{
		{status.Error(codes.Unavailable, "x"), passing, 0, "retryable"},
		{wait(codes.Unavailable), passing, 9 * time.Second, "and it says when"},
		{status.Error(codes.Canceled, "x"), passing, 0, "retryable"},
		{status.Error(codes.DeadlineExceeded, "x"), passing, 0, "retryable"},
		{status.Error(codes.Aborted, "x"), passing, 0, "retryable"},
		{status.Error(codes.OutOfRange, "x"), passing, 0, "retryable"},
		{status.Error(codes.DataLoss, "x"), passing, 0, "retryable"},
		{wait(codes.ResourceExhausted), passing, 9 * time.Second, "retryable, as it says when"},
		{status.Error(codes.ResourceExhausted, "quota"), passing, 0, "a quota is not the message's fault"},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5000000 vs. 4194304)"), long, 0, "the receiver's limit"},
		{status.Error(codes.ResourceExhausted, "request too large"), long, 0, "in other words"},
		{status.Error(codes.InvalidArgument, "x"), permanent, 0, "about the message"},
		{wait(codes.InvalidArgument), permanent, 0, "whatever it says besides"},
		{status.Error(codes.InvalidArgument, "payload too large"), long, 0, "about its length"},
		{status.Error(codes.Unauthenticated, "x"), passing, 0, "a revoked token is not the message's fault"},
		{status.Error(codes.PermissionDenied, "x"), passing, 0, "nor is a right that was lost"},
		{status.Error(codes.Unimplemented, "x"), passing, 0, "the endpoint is another thing's"},
		{status.Error(codes.NotFound, "x"), passing, 0, "the endpoint is another thing's"},
		{status.Error(codes.FailedPrecondition, "x"), passing, 0, "the receiver's state"},
		{status.Error(codes.Internal, "x"), passing, 0, "the receiver's fault"},
		{status.Error(codes.Unknown, "x"), passing, 0, "whatever it means"},
	} {
		s, _ := serve(t, Options{}, func([]string) (*collogspb.ExportLogsServiceResponse, error) { return nil, tc.err })
		n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if got, after := verdict(err); n != 0 || got != tc.want || after != tc.after {
			t.Errorf("%v is %s, to wait %s; want %s, %s: %s", tc.err, got, after, tc.want, tc.after, tc.why)
		}
		if err != nil && !strings.Contains(err.Error(), status.Code(tc.err).String()) {
			t.Errorf("%v: %v does not say so", tc.err, err)
		}
	}
}

// TestPartialSuccessOnFake checks that rejected records are found one by one, and that accepted ones arrive at most
// twice; the one to blame goes alone from then on.
func TestPartialSuccessOnFake(t *testing.T) {
	ms := sinktest.Messages(0, 4)
	a, b, c, d := ms[0].ID, ms[1].ID, ms[2].ID, ms[3].ID
	s, f := serve(t, Options{}, func(ids []string) (*collogspb.ExportLogsServiceResponse, error) {
		resp := &collogspb.ExportLogsServiceResponse{PartialSuccess: &collogspb.ExportLogsPartialSuccess{}}
		for _, id := range ids {
			if id == c {
				resp.PartialSuccess.RejectedLogRecords++
				resp.PartialSuccess.ErrorMessage = "no c here"
			}
		}
		return resp, nil
	})
	n, err := s.Send(t.Context(), ms)
	if got, _ := verdict(err); n != 2 || got != permanent || !strings.Contains(err.Error(), "no c here") {
		t.Errorf("acknowledged %d, %v", n, err)
	}
	if n, err := s.Send(t.Context(), ms[2:]); n != 0 || err == nil {
		t.Errorf("again: acknowledged %d, %v", n, err)
	}
	if n, err := s.Send(t.Context(), ms[3:]); n != 1 || err != nil {
		t.Errorf("the one after it: acknowledged %d, %v", n, err)
	}
	want := []string{strings.Join([]string{a, b, c, d}, " "), a, b, c, c, d}
	if diff := cmp.Diff(want, f.seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestWarningOnFake: a partial success without rejections is a success with a remark.
func TestWarningOnFake(t *testing.T) {
	s, _ := serve(t, Options{}, func([]string) (*collogspb.ExportLogsServiceResponse, error) {
		return &collogspb.ExportLogsServiceResponse{PartialSuccess: &collogspb.ExportLogsPartialSuccess{ErrorMessage: "use a newer version"}}, nil
	})
	if n, err := s.Send(t.Context(), sinktest.Messages(0, 3)); n != 3 || err != nil {
		t.Errorf("acknowledged %d, %v", n, err)
	}
}

// TestHalvesOnFake checks that a refused request is halved until the record to blame is alone.
func TestHalvesOnFake(t *testing.T) {
	for _, tc := range []struct {
		code       codes.Code
		said, want string
	}{
		{codes.InvalidArgument, "no such thing", permanent},
		{codes.ResourceExhausted, "larger than max (7 vs. 5)", long},
	} {
		ms := sinktest.Messages(0, 100)
		taken := map[string]int{}
		s, f := serve(t, Options{}, func(ids []string) (*collogspb.ExportLogsServiceResponse, error) {
			for _, id := range ids {
				if id == ms[70].ID {
					return nil, status.Error(tc.code, tc.said)
				}
			}
			for _, id := range ids {
				taken[id]++
			}
			return &collogspb.ExportLogsServiceResponse{}, nil
		})
		n, err := s.Send(t.Context(), ms)
		if got, _ := verdict(err); n != 70 || got != tc.want {
			t.Errorf("%s: acknowledged %d, %v", tc.code, n, err)
		}
		for i, m := range ms[:70] {
			if taken[m.ID] != 1 {
				t.Errorf("%s: message %d was taken %d times", tc.code, i, taken[m.ID])
			}
		}
		if len(f.seen) > 16 {
			t.Errorf("%s: %d requests", tc.code, len(f.seen))
		}
	}
}

// TestSize checks that a batch beyond the limit is sent as several requests, and that a single message beyond it is
// cut before it is sent.
func TestSize(t *testing.T) {
	limit := 0
	s, f := serve(t, Options{MaxBatchBytes: leastBatchBytes}, ok, grpc.MaxRecvMsgSize(leastBatchBytes))
	ms := sinktest.Messages(0, 300)
	if n, err := s.Send(t.Context(), ms); n != 300 || err != nil {
		t.Errorf("acknowledged %d, %v", n, err)
	}
	if got := strings.Fields(strings.Join(f.seen, " ")); len(f.seen) < 3 || len(got) != 300 || got[0] != ms[0].ID || got[299] != ms[299].ID {
		t.Errorf("%d requests of %d records", len(f.seen), len(got))
	}
	requests := len(f.seen)
	m := sinktest.Messages(0, 1)[0]
	m.Body = fmt.Appendf(nil, `{"id": %q, "data": %q}`, m.ID, strings.Repeat("x", 2*leastBatchBytes))
	_, err := s.Send(t.Context(), []sink.Message{m})
	var l *sink.TooLargeError
	if errors.As(err, &l) {
		limit = l.Limit
	}
	if limit < leastBatchBytes/2 || limit > leastBatchBytes || len(f.seen) != requests {
		t.Errorf("%v, limit %d, %d requests", err, limit, len(f.seen)-requests)
	}
}

// TestReceiversSize checks the limit in the error of gRPC receivers.
func TestReceiversSizeOnFake(t *testing.T) {
	for _, c := range []Compression{None, Gzip} {
		s, _ := serve(t, Options{Compression: c}, ok, grpc.MaxRecvMsgSize(16<<10))
		m := sinktest.Messages(0, 1)[0]
		m.Body = fmt.Appendf(nil, `{"id": %q, "data": %q}`, m.ID, strings.Repeat("x", 64<<10))
		_, err := s.Send(t.Context(), []sink.Message{m})
		var l *sink.TooLargeError
		if !errors.As(err, &l) || l.Limit < 8<<10 || l.Limit > 16<<10 {
			t.Errorf("%s: %#v %v", c, l, err)
		}
	}
}

// TestLongAnswerOnFake: a receiver with an overlong answer has taken the request.
func TestLongAnswerOnFake(t *testing.T) {
	for _, size := range []int{1 << 10, maxReply, 8 << 20} {
		s, f := serve(t, Options{}, func([]string) (*collogspb.ExportLogsServiceResponse, error) {
			return &collogspb.ExportLogsServiceResponse{PartialSuccess: &collogspb.ExportLogsPartialSuccess{ErrorMessage: strings.Repeat("x", size)}}, nil
		})
		if n, err := s.Send(t.Context(), sinktest.Messages(0, 2)); n != 2 || err != nil || len(f.seen) != 1 {
			t.Errorf("%d bytes: acknowledged %d, %v, after %d requests", size, n, err, len(f.seen))
		}
	}
}

// TestTimeout checks that a receiver that does not answer costs only the timeout.
func TestTimeoutOnFake(t *testing.T) {
	done := make(chan struct{})
	s, _ := serve(t, Options{Timeout: 10 * time.Millisecond}, func([]string) (*collogspb.ExportLogsServiceResponse, error) {
		<-done
		return nil, errors.New("too late")
	})
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	close(done)
	if got, _ := verdict(err); got != passing || !strings.Contains(err.Error(), "no answer within 10ms (timeout)") {
		t.Error(err)
	}
}

// TestCredentialsOnFake checks that headers and a user arrive, and that no error repeats them.
func TestCredentialsOnFake(t *testing.T) {
	const secret = "hunter2-and-more"
	f := func([]string) (*collogspb.ExportLogsServiceResponse, error) {
		return nil, status.Error(codes.Unauthenticated, "who is Bearer "+secret+"?")
	}
	s, _ := serve(t, Options{Headers: map[string]string{"Authorization": "Bearer " + secret}}, f)
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "see headers") {
		t.Error(err)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
