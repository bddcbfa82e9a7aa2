package informertest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// overSockets runs a test over HTTP/1.1 and HTTP/2.
func overSockets(t *testing.T, test func(t *testing.T, s *informertest.Server, get func(uri string, header ...string) reply)) {
	t.Helper()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			s := two()
			srv := httptest.NewUnstartedServer(s)
			srv.EnableHTTP2 = proto == "HTTP/2.0"
			srv.StartTLS()
			defer srv.Close() // waits for open connections
			defer s.Cut()
			test(t, s, func(uri string, header ...string) reply {
				req := request(t, uri)
				target, err := req.URL.Parse(srv.URL + uri)
				if err != nil {
					t.Fatal(err)
				}
				req.URL, req.Host = target, ""
				for i := 0; i < len(header); i += 2 {
					req.Header.Set(header[i], header[i+1])
				}
				resp, err := srv.Client().Do(req) //nolint:bodyclose // newReply closes it
				if err != nil {
					t.Fatal(err)
				}
				if resp.Proto != proto {
					t.Errorf("response over %s", resp.Proto)
				}
				return newReply(t, resp)
			})
			if got := s.Recorded(); len(got) == 0 || got[0].Proto != proto {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

// TestGzip: large bodies are compressed for clients that accept it, and watches are not.
func TestGzip(t *testing.T) {
	overSockets(t, func(t *testing.T, s *informertest.Server, get func(string, ...string) reply) {
		for i := range 200 { // 200 KB
			s.Put(pods, "n", fmt.Sprint("p", i), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": strings.Repeat("x", 1000)}}})
		}
		for _, c := range []struct {
			why, uri, accept, encoding, want string
		}{
			{"a large list", "/api/v1/pods", "gzip", "gzip", "\"p199\""},
			{"a small one", "/api/v1/pods?limit=100", "gzip", "", "\"p0\""},
			{"another encoding", "/api/v1/pods", "br", "", "\"p199\""},
			{"a watch", "/api/v1/pods?watch=1", "br, gzip", "", "\"p199\""},
		} {
			resp := get(c.uri, "Accept-Encoding", c.accept)
			r := resp.body
			if got := resp.header.Get("Content-Encoding"); got != c.encoding {
				t.Errorf("%s: encoded as %q, want %q", c.why, got, c.encoding)
			} else if got == "gzip" {
				var err error
				if r, err = gzip.NewReader(r); err != nil {
					t.Fatal(err)
				}
			}
			lines := bufio.NewReader(r)
			for line := ""; !strings.Contains(line, c.want); {
				var err error
				if line, err = lines.ReadString('\n'); err != nil {
					t.Fatalf("%s: %v after %d bytes", c.why, err, len(line))
				}
			}
		}
		if b, err := io.ReadAll(get("/api/v1/pods").body); err != nil || !bytes.HasSuffix(b, []byte("}\n")) {
			t.Errorf("as net/http requests it: %v in %d bytes", err, len(b))
		}
	})
}

// TestGzipMembers: each flush is a separate member, which can be read before the next one arrives.
func TestGzipMembers(t *testing.T) {
	overSockets(t, func(t *testing.T, s *informertest.Server, get func(string, ...string) reply) {
		s.Misbehave(fault{Effect: informertest.GzipMembers})
		resp := get("/api/v1/pods"+streamingList, "Accept-Encoding", "gzip")
		if resp.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("not compressed: %v", resp.header)
		}
		compressed := bufio.NewReader(resp.body)
		z, err := gzip.NewReader(compressed)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{`"name":"b"`, `"name":"new"`} {
			z.Multistream(false)
			b, err := io.ReadAll(z)
			if err != nil || !bytes.Contains(b, []byte(want)) {
				t.Fatalf("member %d: %v: %s", i, err, b)
			}
			if i == 0 {
				s.Put(pods, "n", "new", nil)
				if err := z.Reset(compressed); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 2000 {
			s.Put(pods, "n", fmt.Sprint("p", i), nil)
		}
		resp = get("/api/v1/pods", "Accept-Encoding", "gzip")
		raw, err := io.ReadAll(resp.body)
		if err != nil {
			t.Fatal(err)
		}
		members, all := 0, &bytes.Buffer{}
		source := bytes.NewReader(raw)
		for source.Len() > 0 {
			z, err := gzip.NewReader(source)
			if err != nil {
				t.Fatal(err)
			}
			z.Multistream(false)
			if _, err := all.ReadFrom(z); err != nil {
				t.Fatal(err)
			}
			members++
		}
		if members < 3 || strings.Count(all.String(), `"uid"`) != 2003 {
			t.Errorf("a list in %d members, with %d objects", members, strings.Count(all.String(), `"uid"`))
		}
		if b, err := io.ReadAll(get("/api/v1/pods").body); err != nil || !bytes.Equal(b, all.Bytes()) {
			t.Errorf("read by net/http: %v, %d bytes, want %d", err, len(b), all.Len())
		}
	})
}

// TestBreaksOverSockets: a cut body ends with an error, after the bytes sent before.
func TestBreaksOverSockets(t *testing.T) {
	overSockets(t, func(t *testing.T, s *informertest.Server, get func(string, ...string) reply) {
		resp := get("/api/v1/pods?watch=1&resourceVersion=1000")
		r := bufio.NewReader(resp.body)
		for _, want := range []string{"1001", "1002"} {
			if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, want) {
				t.Fatalf("%q, %v: want an event of %s", line, err, want)
			}
		}
		s.Cut()
		if b, err := io.ReadAll(r); err == nil || len(b) > 0 {
			t.Errorf("a cut watch: %q, %v", b, err)
		}
		s.Misbehave(fault{Effect: informertest.CutFrame, Times: 2})
		for _, uri := range []string{"/api/v1/pods", "/api/v1/pods" + streamingList} {
			if b, err := io.ReadAll(get(uri).body); err == nil || !bytes.Contains(b, []byte(`{"`)) || bytes.HasSuffix(b, []byte("}\n")) {
				t.Errorf("a cut frame of %s: %q, %v", uri, b, err)
			}
		}
	})
}
