package torture

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// observer acts as the API server for the daemon. It passes on requests and responses, and notes lists, watches
// and refusals: see causes. It notes each part of a response before the daemon receives it.
type observer struct {
	*causes
	server *httptest.Server
	to     *url.URL

	mu   sync.Mutex
	errs []error
}

// connKey is the context key of a request's connection.
type connKey struct{}

// newObserver passes on requests, with the credentials of a kubeconfig, until the end of the test.
func newObserver(t *testing.T, kubeconfig string) *observer {
	t.Helper()
	to, err := url.Parse(plane.URL())
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{causes: &causes{}, to: to}
	transport := &http.Transport{TLSClientConfig: credentials(t, kubeconfig), ForceAttemptHTTP2: true, DisableCompression: true}
	silent := log.New(io.Discard, "", 0) // connections are cut on purpose
	o.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(o.to)
			r.Out.Header.Del("Authorization")
		},
		Transport: transport, FlushInterval: -1, ErrorLog: silent,
		ModifyResponse: o.answered, ErrorHandler: o.unanswered,
	})
	o.server.Config.Handler = o.asked(o.server.Config.Handler)
	o.server.Config.ErrorLog = silent
	o.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	o.server.EnableHTTP2 = true
	o.server.StartTLS()
	t.Cleanup(func() {
		o.server.CloseClientConnections()
		o.server.Close()
		transport.CloseIdleConnections()
		if err := o.failed(); err != nil {
			t.Errorf("the observer: %v", err)
		}
	})
	return o
}

// credentials returns the TLS configuration of a devcluster kubeconfig.
func credentials(t *testing.T, kubeconfig string) *tls.Config {
	t.Helper()
	var c struct {
		Users []struct {
			User struct {
				Cert string `json:"client-certificate-data"`
				Key  string `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := json.Unmarshal(read(t, kubeconfig), &c); err != nil || len(c.Users) != 1 {
		t.Fatalf("%s has %d users: %v", kubeconfig, len(c.Users), err)
	}
	certPEM, err1 := base64.StdEncoding.DecodeString(c.Users[0].User.Cert)
	keyPEM, err2 := base64.StdEncoding.DecodeString(c.Users[0].User.Key)
	pair, err3 := tls.X509KeyPair(certPEM, keyPEM)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(read(t, plane.CAFile()))
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

// kubeconfig writes the kubeconfig of a run of the daemon, which reaches the observer through an address. The
// token identifies the run.
func (o *observer) kubeconfig(path, address string, run int) error {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.server.Certificate().Raw})
	data, err := json.Marshal(fields{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []fields{{"name": "c", "cluster": fields{"server": "https://" + address, "certificate-authority-data": ca}}},
		"users":    []fields{{"name": "u", "user": fields{"token": fmt.Sprintf("run-%d", run)}}},
		"contexts": []fields{{"name": "c", "context": fields{"cluster": "c", "user": "u"}}},
	})
	if err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(path), "next")
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func (o *observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errs = append(o.errs, err)
}

func (o *observer) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.errs...)
}

// requestKey is the context key of a request.
type requestKey struct{}

// asked notes a request.
func (o *observer) asked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := parseRequest(r); a != nil {
			o.add(a)
			r = r.WithContext(context.WithValue(r.Context(), requestKey{}, a))
		}
		next.ServeHTTP(w, r)
	})
}

// collection matches the path of a collection, in a namespace or over all.
var collection = regexp.MustCompile(`^(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([^/]+)$`)

// parseRequest returns nil unless the request is a list or watch of our kinds.
func parseRequest(r *http.Request) *request {
	m := collection.FindStringSubmatch(r.URL.Path)
	if m == nil || r.Method != http.MethodGet {
		return nil
	}
	for _, k := range kinds {
		if m[1]+"/"+m[3] != k.path("", "") {
			continue
		}
		a := &request{at: time.Now(), kind: k.name(), namespace: m[2], what: lists}
		_, _ = fmt.Sscanf(r.Header.Get("Authorization"), "Bearer run-%d", &a.run)
		switch q := r.URL.Query(); {
		case q.Get("sendInitialEvents") == "true":
			a.what = streams
		case q.Get("watch") != "":
			a.what, a.from = watches, q.Get("resourceVersion")
		case q.Get("limit") == "1" && q.Get("continue") == "":
			a.what = probes
		case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList"):
			a.what = audits
		}
		return a
	}
	return nil
}

// unanswered breaks the daemon's connection, like the one to the server.
func (o *observer) unanswered(_ http.ResponseWriter, r *http.Request, _ error) {
	cutOff(r)
	panic(http.ErrAbortHandler)
}

func cutOff(r *http.Request) {
	if r.Context().Err() != nil {
		return // the daemon closed it
	}
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn()
		}
		reset(c)
	}
}

// answered reads the response while the daemon does.
func (o *observer) answered(resp *http.Response) error {
	a, _ := resp.Request.Context().Value(requestKey{}).(*request)
	body := &teeBody{ReadCloser: resp.Body, request: resp.Request}
	resp.Body = body
	if a == nil {
		return nil
	}
	o.note(func() {
		a.code, a.until = resp.StatusCode, time.Now()
		if a.code == http.StatusGone && a.what == watches {
			a.at410 = a.from
		}
	})
	if resp.StatusCode != http.StatusOK || a.what == probes || a.what == audits {
		return nil
	}
	l := &listener{observer: o, request: a, protobuf: strings.Contains(resp.Header.Get("Content-Type"), "protobuf"), encoding: resp.Header.Get("Content-Encoding")}
	body.hear, body.end = l.frames, func() {}
	if a.what == lists {
		body.hear, body.end = l.keep, l.page
	}
	return nil
}

// teeBody is a body that a listener also reads.
type teeBody struct {
	io.ReadCloser
	request *http.Request
	hear    func([]byte)
	end     func() // called at the end of a complete response
}

// Read implements io.Reader.
func (b *teeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.hear != nil {
		b.hear(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		if b.hear != nil {
			b.end()
			b.hear = nil
		}
	case err != nil:
		cutOff(b.request)
	}
	return n, err
}
