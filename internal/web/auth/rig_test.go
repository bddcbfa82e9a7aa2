package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"

	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// fake is an API server's reviewer in memory.
type fake struct {
	mu     sync.Mutex
	tokens map[string]authentication.UserInfo
	// for audiences other than the server's, by token
	audiences map[string][]string
	denies    bool                 // explicitly, whatever else it answers
	deaf      bool                 // it does not know audiences, and confirms none
	allowed   map[string][]string  // by user: "get pods", "get deployments.apps in shop", "post /tattler/sinks"
	created   map[string]time.Time // by namespace; others were created at the beginning of 1970
	err       error
	wait      chan struct{} // reviews wait until it is closed, or for their context
	asked     []string      // of all reviews, in order
	busy, max int
}

func (f *fake) enter(ctx context.Context, what string) (leave func(), err error) {
	f.mu.Lock()
	f.asked = append(f.asked, what)
	f.busy++
	f.max = max(f.max, f.busy)
	wait := f.wait
	f.mu.Unlock()
	leave = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy--
	}
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

func (f *fake) ReviewToken(ctx context.Context, spec authentication.TokenReviewSpec) (s authentication.TokenReviewStatus, err error) {
	leave, err := f.enter(ctx, "token "+spec.Token)
	if err != nil {
		return s, err
	}
	defer leave()
	f.mu.Lock()
	defer f.mu.Unlock()
	user, ok := f.tokens[spec.Token]
	if len(spec.Audiences) > 0 && !f.deaf {
		s.Audiences = slices.DeleteFunc(slices.Clone(spec.Audiences), func(a string) bool { return !slices.Contains(f.audiences[spec.Token], a) })
		ok = ok && len(s.Audiences) > 0
	}
	s.Authenticated, s.User = ok, user
	return s, f.err
}

func (f *fake) ReviewAccess(ctx context.Context, spec authorization.SubjectAccessReviewSpec) (s authorization.SubjectAccessReviewStatus, err error) {
	var what string
	if r := spec.ResourceAttributes; r != nil {
		what = r.Verb + " " + strings.TrimSuffix(r.Resource+"."+r.Group, ".")
		if r.Namespace != "" {
			what += " in " + r.Namespace
		}
	} else {
		what = spec.NonResourceAttributes.Verb + " " + spec.NonResourceAttributes.Path
	}
	leave, err := f.enter(ctx, spec.User+" "+what)
	if err != nil {
		return s, err
	}
	defer leave()
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Allowed, s.Denied = slices.Contains(f.allowed[spec.User], what), f.denies
	return s, f.err
}

func (f *fake) NamespaceCreated(ctx context.Context, name string) (time.Time, error) {
	leave, err := f.enter(ctx, "namespace "+name)
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.created[name]
	if !ok {
		at = time.Unix(0, 0)
	}
	return at, f.err
}

// set changes the fake between reviews.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// took returns the reviews since the last call.
func (f *fake) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = nil
	return out
}

// authority is a CA of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newCA(t *testing.T, name string) *authority {
	t.Helper()
	c := &authority{t: t}
	c.key = newKey(t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, c.key.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	if c.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	c.file = write(t, name+".crt", block("CERTIFICATE", der))
	return c
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// issue signs a certificate, a client's unless change says otherwise.
func (c *authority) issue(name string, groups []string, change func(*x509.Certificate)) tls.Certificate {
	c.t.Helper()
	key := newKey(c.t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	if change != nil {
		change(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, c.cert, key.Public(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		c.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// serving returns files of a serving certificate for names.
func (c *authority) serving(names ...string) (cert, key string) {
	c.t.Helper()
	pair := c.issue("server", nil, func(t *x509.Certificate) {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, n := range names {
			if ip := net.ParseIP(n); ip != nil {
				t.IPAddresses = append(t.IPAddresses, ip)
			} else {
				t.DNSNames = append(t.DNSNames, n)
			}
		}
	})
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		c.t.Fatal(err)
	}
	return write(c.t, "tls.crt", block("CERTIFICATE", pair.Certificate[0])), write(c.t, "tls.key", block("PRIVATE KEY", der))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// request makes a request as a server receives it: from a loopback address, for HOST, with headers as "Name: value".
func request(t *testing.T, method, host string, certs []tls.Certificate, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/path?q=1", nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})))
	r.Host, r.RemoteAddr = host, "127.0.0.1:1234"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	if certs != nil {
		r.TLS = &tls.ConnectionState{}
		for _, c := range certs {
			r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, c.Leaf)
		}
	}
	return r
}

// answered passes a request through Wrap, and returns the answer: that of the handler is the viewer's name and groups.
func answered(a *Auth, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := From(r.Context())
		_, _ = io.WriteString(w, v.String()+" "+v.UID+" "+strings.Join(v.Groups, ","))
	})).ServeHTTP(w, r)
	return w
}

// body returns an answer's text without the newline.
func body(w *httptest.ResponseRecorder) string { return strings.TrimSpace(w.Body.String()) }

func mustNew(t *testing.T, o Options) *Auth {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// logged collects a log.
func logged() (*slog.Logger, *lines) {
	l := &lines{}
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})), l
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var errDown = errors.New("the API server is away")
