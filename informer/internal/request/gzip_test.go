package request

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// serve starts a server, over HTTP/1.1 or over TLS with HTTP/2, and returns a client of it.
func serve(t *testing.T, http2 bool, cfg *rest.Config, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := map[bool]int{false: 1, true: 2}[http2]; r.ProtoMajor != want {
			t.Errorf("asked over HTTP/%d, want %d", r.ProtoMajor, want)
		}
		h(w, r)
	}))
	if http2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
		cfg.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	cfg.Host = srv.URL
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// zip is one gzip member.
func zip(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := stdgzip.NewWriter(&b)
	if _, err := io.WriteString(z, s); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestMembersArriveAtOnce has a server that sends a member only after the client has read the previous one: a
// reader that waits for the next member never ends.
func TestMembersArriveAtOnce(t *testing.T) {
	parts := []string{"first ", strings.Repeat("large ", 20_000), "", "last"}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{})
			c := serve(t, http2, &rest.Config{}, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "gzip" {
					t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
				}
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "application/json")
				for _, p := range parts {
					_, _ = w.Write(zip(t, p))
					w.(http.Flusher).Flush()
					if p == "" {
						continue // not observable by the client
					}
					select {
					case <-read:
					case <-r.Context().Done():
					}
				}
			})
			body, _, err := c.Open(t.Context(), "/api", nil, Want{})
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			for _, p := range parts {
				b := make([]byte, len(p))
				if _, err := io.ReadFull(body, b); err != nil || string(b) != p {
					t.Fatalf("%d bytes, want %d: %v", len(b), len(p), err)
				}
				if p != "" {
					read <- struct{}{}
				}
			}
			if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("after the last member: %d bytes, %v", n, err)
			}
		})
	}
}

// TestCloseEndsARead: Close ends a watch that waits.
func TestCloseEndsARead(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, http2, &rest.Config{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(zip(t, "x"))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			body, _, err := c.Open(t.Context(), "/api", nil, Want{Watch: true})
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			b := make([]byte, 10)
			if n, err := body.Read(b); n != 1 || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			ended := make(chan error)
			go func() {
				_, err := body.Read(b)
				ended <- err
			}()
			if err := body.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err == nil {
				t.Error("read bytes that were not sent")
			}
		})
	}
}

func TestNoCompressionWhereItIsOff(t *testing.T) {
	c := serve(t, false, &rest.Config{DisableCompression: true}, func(w http.ResponseWriter, r *http.Request) {
		if v := r.Header.Get("Accept-Encoding"); v != "identity" {
			t.Errorf("asked for %q", v)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	if b, err := c.Get(t.Context(), "/api", nil, 10); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestUnzip(t *testing.T) {
	two := append(zip(t, "one "), zip(t, "two")...)
	corrupt := bytes.Clone(two)
	corrupt[len(corrupt)-1] ^= 1
	for _, c := range []struct {
		why  string
		in   []byte
		want string
		ok   bool
	}{
		{"nothing", nil, "", true},
		{"one member", zip(t, "one"), "one", true},
		{"two members", two, "one two", true},
		{"an empty member", append(zip(t, ""), two...), "one two", true},
		{"cut in a header", two[:len(zip(t, "one "))+5], "one ", false},
		{"cut in a member", two[:len(two)-9], "one two", false},
		{"a wrong checksum", corrupt, "one two", false},
		{"not gzip", []byte("garbage, and enough of it"), "", false},
		{"garbage after the members", append(bytes.Clone(two), "garbage, and enough of it"...), "one two", false},
	} {
		for _, r := range []io.Reader{bytes.NewReader(c.in), iotest.OneByteReader(bytes.NewReader(c.in))} {
			b, err := io.ReadAll(unzip(io.NopCloser(r)))
			if string(b) != c.want && (c.ok || !strings.HasPrefix(c.want, string(b))) || (err == nil) != c.ok {
				t.Errorf("%s: %q, %v", c.why, b, err)
			}
			if wire.Unreadable(err) {
				t.Errorf("%s: %v blames the server's objects", c.why, err)
			}
		}
	}
}

// FuzzUnzip compares unzip with compress/gzip, which differs only in when it returns bytes and in accepting
// headers with reserved flags.
func FuzzUnzip(f *testing.F) {
	f.Add(append(zip(f, "one "), zip(f, "two")...))
	f.Add(zip(f, ""))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var want []byte
		z, wantErr := stdgzip.NewReader(bytes.NewReader(in))
		if wantErr == nil {
			want, wantErr = io.ReadAll(io.LimitReader(z, 1<<20))
		} else if errors.Is(wantErr, io.EOF) {
			wantErr = nil // an empty body
		}
		got, err := io.ReadAll(io.LimitReader(unzip(io.NopCloser(bytes.NewReader(in))), 1<<20))
		if wantErr == nil && errors.Is(err, gzip.ErrHeader) && bytes.HasPrefix(want, got) {
			return
		}
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%q, %v, want %q, %v", got, err, want, wantErr)
		}
	})
}
