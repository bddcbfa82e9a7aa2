package otlp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// serveHTTP runs an HTTP receiver for the test, and a sink for it.
func serveHTTP(t *testing.T, o Options, f http.HandlerFunc) *Sink {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	o.Protocol = HTTP
	o.Endpoint = strings.Replace(server.URL, "http://", "http://"+o.Endpoint, 1)
	return newSink(t, o)
}

func TestStatusOnFake(t *testing.T) {
	for _, tc := range []struct {
		code  int
		said  string
		after string
		want  string
		wait  time.Duration
		why   string
	}{
		{200, "", "", acknowledged, 0, "done"},
		{202, "", "", acknowledged, 0, "accepted is a promise of the receiver"},
		{204, "", "", acknowledged, 0, "done, and silent"},
		{301, "", "", passing, 0, "not followed: credentials would go elsewhere"},
		{400, "", "", permanent, 0, "the message is wrong"},
		{400, "http: request body too large", "", long, 0, "what the Collector says of a long one"},
		{400, "Client sent an HTTP request to an HTTPS server.", "", passing, 0, "what Go's servers say of http:// where https:// is right"},
		{400, "The plain HTTP request was sent to HTTPS port", "", passing, 0, "and nginx"},
		{400, "The SSL certificate error", "", passing, 0, "our certificate is the configuration's"},
		{400, "Request Header Or Cookie Too Large", "", passing, 0, "and so is a header"},
		{400, "missing X-Scope-OrgID header", "", passing, 0, "a header that is missing is missing of each request"},
		{402, "", "", passing, 0, "unpaid"},
		{401, "", "", passing, 0, "a revoked token is not the message's fault"},
		{403, "", "", passing, 0, "nor is a right that was lost"},
		{404, "", "", passing, 0, "the endpoint is another thing's"},
		{405, "", "", passing, 0, "the endpoint is another thing's"},
		{407, "", "", passing, 0, "the proxy's"},
		{408, "", "", passing, 0, "too slow this time"},
		{413, "", "", long, 0, "it says so"},
		{415, "", "", passing, 0, "a receiver takes protobuf: it is another thing"},
		{422, "", "", permanent, 0, "the message is wrong"},
		{426, "", "", passing, 0, "another protocol"},
		{431, "", "", passing, 0, "the headers are the configuration's"},
		{429, "", "", passing, 0, "too many"},
		{429, "", "9", passing, 9 * time.Second, "and it says when"},
		{500, "", "", passing, 0, "the receiver's fault"},
		{501, "", "", passing, 0, "the receiver's fault"},
		{502, "", "", passing, 0, "a proxy's fault"},
		{503, "", "9", passing, 9 * time.Second, "overloaded"},
		{504, "", "", passing, 0, "a proxy's fault"},
	} {
		for _, form := range []string{mediaType, "text/plain"} {
			s := serveHTTP(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", form)
				w.Header().Set("Location", "/elsewhere")
				if tc.after != "" {
					w.Header().Set("Retry-After", tc.after)
				}
				w.WriteHeader(tc.code)
				body := []byte(tc.said)
				if form == mediaType && tc.code/100 != 2 {
					body, _ = proto.Marshal(&statuspb.Status{Message: tc.said})
				}
				_, _ = w.Write(body) // the client may have gone
			})
			_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
			if got, wait := verdict(err); got != tc.want || wait != tc.wait {
				t.Errorf("%d as %s is %s, to wait %s; want %s, %s: %s", tc.code, form, got, wait, tc.want, tc.wait, tc.why)
			}
			if err != nil && (!strings.Contains(err.Error(), strconv.Itoa(tc.code)) || !strings.Contains(err.Error(), tc.said)) {
				t.Errorf("%d: %v does not say so", tc.code, err)
			}
		}
	}
}

// TestProxyOnFake: an HTML page comes from a proxy, which has read no record.
func TestProxyOnFake(t *testing.T) {
	for _, code := range []int{400, 422} {
		s := serveHTTP(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(code)
			_, _ = w.Write([]byte("<html>no</html>")) // the client may have gone
		})
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if got, _ := verdict(err); got != passing {
			t.Errorf("%d is %s: %v", code, got, err)
		}
	}
}

// TestAnswersOnFake checks that only the beginning of an overlong answer is read.
func TestAnswersOnFake(t *testing.T) {
	response := func(rejected int64, said int) string {
		text, err := proto.Marshal(&collogspb.ExportLogsServiceResponse{PartialSuccess: &collogspb.ExportLogsPartialSuccess{
			RejectedLogRecords: rejected, ErrorMessage: strings.Repeat("x", said),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, tc := range []struct {
		why, media, text, want string
	}{
		{"nothing", mediaType, "", acknowledged},
		{"a remark", mediaType, response(0, 10), acknowledged},
		{"a rejection", mediaType, response(1, 10), permanent},
		{"a long remark", mediaType, response(0, 1<<20), acknowledged},
		{"a long rejection", mediaType, response(1, 1<<20), permanent},
		{"no protobuf", mediaType, "\xff\xff\xff", acknowledged},
		{"a long answer of another kind", "application/json", strings.Repeat(" ", 1<<20), acknowledged},
		{"a page", "text/html; charset=utf-8", "<h1>Sign in</h1>", passing},
	} {
		s := serveHTTP(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tc.media)
			fmt.Fprint(w, tc.text)
		})
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if got, _ := verdict(err); got != tc.want {
			t.Errorf("%s: %v, want %s", tc.why, err, tc.want)
		}
	}
}

// TestRequestOnFake checks a request and its headers, and that no error repeats a credential.
func TestRequestOnFake(t *testing.T) {
	for _, c := range []Compression{Gzip, None} {
		var h http.Header
		var path string
		var size int
		o := Options{Endpoint: "user:hunter2@", Compression: c, Headers: map[string]string{"x-tenant": "tenant-word"}}
		s := serveHTTP(t, o, func(w http.ResponseWriter, r *http.Request) {
			h, path = r.Header, r.URL.Path
			body, _ := io.ReadAll(r.Body)
			size = len(body)
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, h["Authorization"], h["X-Tenant"], "hunter2")
		})
		ms := sinktest.Messages(0, 50)
		_, err := s.Send(t.Context(), ms)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "tenant-word") || strings.Contains(err.Error(), "dXNlcjpodW50ZXIy") {
			t.Errorf("%v", err)
		}
		if path != "/v1/logs" || h.Get("Content-Type") != mediaType || h.Get("User-Agent") != "tattler/test" ||
			h.Get("Authorization") != "Basic dXNlcjpodW50ZXIy" || (h.Get("Content-Encoding") == "gzip") != (c == Gzip) {
			t.Errorf("%s %v", path, h)
		}
		if plain := proto.Size(s.request(must(s.entries(ms))(t))); (size < plain/2) != (c == Gzip) {
			t.Errorf("%s: %d bytes for %d", c, size, plain)
		}
	}
}
