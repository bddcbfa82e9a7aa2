package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/internal/sink"
)

// httpTransport exports protobuf over HTTP.
type httpTransport struct {
	s      *Sink
	url    string
	header http.Header
	client *http.Client
}

const mediaType = "application/x-protobuf"

func newHTTP(s *Sink, config *tls.Config) *httpTransport {
	u := *s.url
	u.User = nil // it is sent as a header
	w := &httpTransport{s: s, url: u.String(), header: http.Header{"User-Agent": {s.agent}, "Content-Type": {mediaType}}}
	for name, value := range headers(s) {
		w.header.Set(name, value)
	}
	if s.o.Compression == Gzip {
		w.header.Set("Content-Encoding", "gzip")
	}
	w.client = sink.HTTPClient(config, 1)
	return w
}

func (w *httpTransport) close() { w.client.CloseIdleConnections() }

func (w *httpTransport) export(ctx context.Context, message *collogspb.ExportLogsServiceRequest) (answer, error) {
	return w.post(ctx, message)
}

// post sends a request of any signal: their answers have the same form.
func (w *httpTransport) post(ctx context.Context, message proto.Message) (answer, error) {
	body, err := proto.Marshal(message)
	if err != nil {
		return answer{}, &sink.PermanentError{Err: w.s.failed(fmt.Errorf("encode protobuf: %w", err))}
	}
	if w.s.o.Compression == Gzip {
		body = gzipped(body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return answer{}, w.s.failed(sink.NoURL(err))
	}
	req.Header = w.header.Clone()
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, w.s.failed(sink.NoURL(err))
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRead)) // the status decides, even if the body cannot be read
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode/100 != 2 {
		return answer{}, w.refused(resp, media, text)
	}
	if media == "text/html" {
		return answer{}, w.s.failed(errors.New("the answer is an HTML page: is the endpoint an OTLP receiver?"))
	}
	if media != mediaType {
		return answer{}, nil
	}
	a := partialSuccess(text)
	a.said = w.s.mask.Excerpt([]byte(a.said))
	return a, nil
}

func gzipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body) // a bytes.Buffer returns no error
	_ = z.Close()
	return b.Bytes()
}

// refused describes a response that does not take the request. Its body should be a google.rpc.Status.
func (w *httpTransport) refused(resp *http.Response, media string, text []byte) error {
	code := resp.StatusCode
	said := string(text)
	var sent statuspb.Status
	if media == mediaType {
		if err := proto.Unmarshal(text, &sent); err == nil {
			said = sent.GetMessage()
		}
	}
	err := errors.New(strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code)))
	if said = w.s.mask.Excerpt([]byte(said)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	st := &statuspb.Status{Code: int32(grpcCode(code)), Message: said, Details: sent.GetDetails()}
	if media == "text/html" && grpcCode(code) == codes.InvalidArgument { // from a proxy, which reads no records
		st.Code = int32(codes.FailedPrecondition)
	}
	if code == http.StatusRequestEntityTooLarge {
		return &sink.TooLargeError{Err: w.s.failed(err)}
	}
	err = w.s.classify(status.FromProto(st), err)
	if after, ok := sink.RetryAfter(resp.Header.Get("Retry-After"), sink.LongestWait); ok && !sink.BlamesMessage(err) {
		return &sink.RetryAfterError{After: after, Err: err}
	}
	return err
}

// grpcCode maps an HTTP status to a gRPC code, as far as classify treats them differently.
func grpcCode(code int) codes.Code {
	switch code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusMisdirectedRequest, http.StatusUnsupportedMediaType:
		return codes.NotFound // an OTLP receiver takes such requests: this is another server
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return codes.Unavailable
	}
	switch {
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		return codes.InvalidArgument
	case code/100 == 4: // about payment, headers, protocols: the same for every request
		return codes.FailedPrecondition
	}
	return codes.Unavailable
}

// partialSuccess decodes the beginning of an ExportLogsServiceResponse or an ExportTraceServiceResponse; the text may be cut
// off.
func partialSuccess(text []byte) (a answer) {
	inner, ok := field(text, 1, protowire.BytesType)
	if !ok {
		return answer{}
	}
	if n, ok := field(inner, 1, protowire.VarintType); ok {
		v, _ := protowire.ConsumeVarint(n)
		a.rejected = int64(v)
	}
	if said, ok := field(inner, 2, protowire.BytesType); ok {
		a.said = string(said)
	}
	return a
}

// field returns the value of a field, cut off where the message is.
func field(message []byte, number protowire.Number, typ protowire.Type) ([]byte, bool) {
	for len(message) > 0 {
		num, t, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, false
		}
		message = message[n:]
		if num != number || t != typ {
			if n = protowire.ConsumeFieldValue(num, t, message); n < 0 {
				return nil, false
			}
			message = message[n:]
			continue
		}
		if t != protowire.BytesType {
			return message, protowire.ConsumeFieldValue(num, t, message) > 0
		}
		size, n := protowire.ConsumeVarint(message)
		if n < 0 {
			return nil, false
		}
		return message[n:][:min(size, uint64(len(message)-n))], true
	}
	return nil, false
}
