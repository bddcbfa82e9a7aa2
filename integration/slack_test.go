package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const slackHost = "hooks.slack.com"

// slack is a fake of hooks.slack.com: a server with a certificate of that name, and the proxy through which a
// process reaches it.
type slack struct {
	env []string // makes a process use the fake

	mu      sync.Mutex
	refused bool
	paths   []string
	bodies  []string
	strays  []string // other requests to the proxy
}

// newSlack returns a server that refuses the first message, with a response that repeats the path.
func newSlack(t *testing.T) *slack {
	t.Helper()
	s := &slack{}
	there := httptest.NewUnstartedServer(http.HandlerFunc(s.take))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	there.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, ca)}}
	there.StartTLS()
	proxy := httptest.NewServer(s.proxy(there.Listener.Addr().String()))
	t.Cleanup(func() {
		proxy.Close()
		there.Close()
	})
	s.env = []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=", "no_proxy=", "SSL_CERT_FILE=" + ca}
	return s
}

func (s *slack) take(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.refused {
		s.refused = true
		http.Error(w, "cannot take "+q.URL.Path+" now", http.StatusServiceUnavailable)
		return
	}
	s.paths, s.bodies = append(s.paths, q.URL.Path), append(s.bodies, string(body))
}

// proxy connects clients to the fake, and to nothing else.
func (s *slack) proxy(address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodConnect || q.Host != slackHost+":443" {
			s.mu.Lock()
			s.strays = append(s.strays, q.Method+" "+q.Host)
			s.mu.Unlock()
			http.Error(w, "only Slack can be reached", http.StatusForbidden)
			return
		}
		to, err := (&net.Dialer{}).DialContext(q.Context(), "tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.Close()
		w.WriteHeader(http.StatusOK)
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer from.Close()
		go func() {
			_, _ = io.Copy(to, buffered)
			to.Close()
		}()
		_, _ = io.Copy(from, to)
	})
}

// texts returns all messages so far.
func (s *slack) texts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.bodies, "\n")
}

// wait waits until a message contains a text.
func (s *slack) wait(t *testing.T, p *process, text string) {
	t.Helper()
	until(t, p, func() bool { return strings.Contains(s.texts(), text) }, func() string {
		return "no message with " + text + " in:\n" + s.texts()
	})
}

// until waits for a condition while a process works on it.
func until(t *testing.T, p *process, done func() bool, missing func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); pause() {
		if time.Now().After(deadline) {
			t.Fatalf("%s\nafter %v; stderr:\n%s", missing(), patience, tail(p.read(t, p.err)))
		}
	}
}

// certificate makes a self-signed certificate of Slack's name and writes it to a file.
func certificate(t *testing.T, file string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{slackHost}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
