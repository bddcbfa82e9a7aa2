package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

const secret = "hunter2-and-more"

// hostile is a receiver that answers as no receiver should, once it has read the request.
func hostile(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client may have gone
		answer(w, r)
	}))
	t.Cleanup(s.Close) // waits for its handlers, and so until the client has left them
	return s
}

// forever writes a part again and again, until the client leaves. It fails the test if the client reads on and on.
func forever(t *testing.T, w io.Writer, r *http.Request, part []byte, flush func() error, pause time.Duration) {
	const buffers = 64 << 20 // more than those of the connection
	for n := 0; ; n += len(part) {
		if n > buffers {
			t.Error("the client reads an endless answer")
			return
		}
		if _, err := w.Write(part); err != nil || flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(pause):
		}
	}
}

// TestHostile: whatever a receiver does, a request ends, each span is exported or dropped, and no credential leaves its way.
func TestHostile(t *testing.T) {
	var elsewhere atomic.Int64
	other := hostile(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	status := func(code int, header, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, strings.Repeat("no, "+r.Header.Get("X-Key")+"\x1b[31m\n", 1000))
		}
	}
	partial := func(rejected int64, said string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			b, _ := proto.Marshal(&coltracepb.ExportTraceServiceResponse{
				PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: said},
			})
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write(b)
		}
	}
	endless := func(code int, pause time.Duration, part string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			forever(t, w, r, []byte(part), http.NewResponseController(w).Flush, pause)
		}
	}
	const spans, slowly = 7, "it took them, and then answers a byte at a time"
	for _, tc := range []struct {
		why      string
		answer   http.HandlerFunc
		exported int64
	}{
		{"it hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0},
		{slowly, endless(200, 10*time.Millisecond, "x"), spans},
		{"it refuses a byte at a time", endless(503, 10*time.Millisecond, "x"), 0},
		{"it took them, and the answer has no end", endless(200, 0, strings.Repeat("x", 1<<16)), spans},
		{"it refuses, and the answer has no end", endless(400, 0, strings.Repeat("x", 1<<16)), 0},
		{"it compresses an answer without an end", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusServiceUnavailable)
			z := gzip.NewWriter(w)
			part := make([]byte, 1<<20)
			_, _ = rand.NewChaCha8([32]byte{}).Read(part)
			forever(t, z, r, part, z.Flush, 0)
		}, 0},
		{"it sends hints without an end", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Header().Set("Link", strings.Repeat("x", 1000))
				w.WriteHeader(http.StatusEarlyHints)
			}
		}, 0},
		{"its header is too long", status(200, "X-Long", strings.Repeat("x", 1<<20)), 0},
		{"it resets the connection", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}, 0},
		{"it resets the connection within its answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, spans}, // its status was 200
		{"it is no HTTP server", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(c, "220 mail.example.com ESMTP\r\n")
			_ = c.Close()
		}, 0},
		{"too long", status(413, "X", ""), 0},
		{"later: never", status(429, "Retry-After", "99999999999999999999"), 0},
		{"later: infinite", status(429, "Retry-After", "Inf"), 0},
		{"later: not a number", status(503, "Retry-After", "NaN"), 0},
		{"later: negative", status(429, "Retry-After", "-1"), 0},
		{"later: in the year 9999", status(429, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), 0},
		{"later: long", status(429, "Retry-After", strings.Repeat("9", 10_000)), 0},
		{"moved", status(301, "Location", other.URL), 0},
		{"found", status(302, "Location", other.URL), 0},
		{"temporarily elsewhere", status(307, "Location", other.URL), 0},
		{"elsewhere for good", status(308, "Location", other.URL+"/?"+secret), 0},
		{"another protocol", status(101, "Upgrade", "websocket"), 0},
		{"it rejects fewer than none", partial(-5, "no"), spans},
		{"it rejects more than all", partial(1<<62, "no "+secret+strings.Repeat("x", 1<<20)), 0},
		{"it rejects some", partial(3, "\x1b[31m\nno "+secret), spans - 3},
	} {
		t.Run(tc.why, func(t *testing.T) {
			server := hostile(t, tc.answer)
			var log bytes.Buffer
			o, within := DefaultOptions(), 200*time.Millisecond
			switch {
			case tc.why == slowly:
				within = 5 * time.Second // the status must arrive before it, and the rest after it
			case tc.exported > 0:
				within = time.Minute
			}
			o.Endpoint, o.Headers, o.Timeout = strings.Replace(server.URL, "http://", "http://me:"+secret+"@", 1), map[string]string{"x-key": secret}, within
			e, err := New("tattler/v1", o, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			e.flush = 2 * time.Minute
			for n := range spans {
				e.Journaled("prod", change(n), seen)
			}
			ctx, stop := context.WithCancel(t.Context())
			stop() // one attempt
			if err := e.Run(ctx); err != nil {
				t.Error(err)
			}
			s := e.Status()
			if s.Exported != tc.exported || s.Exported+s.Dropped != spans || s.Queued != 0 || (s.Error == "") != (tc.exported == spans) {
				t.Errorf("%+v", s)
			}
			if (log.Len() == 0) != (s.Dropped == 0) {
				t.Errorf("%d dropped spans, and the log is %q", s.Dropped, &log)
			}
			for _, text := range []string{s.Error, log.String()} {
				if strings.Contains(text, secret) || strings.ContainsAny(text, "\x1b") || len(text) > 1000 {
					t.Errorf("%d bytes: %.1000q", len(text), text)
				}
			}
		})
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}
