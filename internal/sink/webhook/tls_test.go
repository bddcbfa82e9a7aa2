package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// pair writes a self-signed certificate and its key.
func pair(t *testing.T, host string) (cert, key string) {
	t.Helper()
	k := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if host != "localhost" {
		c.IPAddresses = nil
	}
	der := must(x509.CreateCertificate(rand.Reader, c, c, k.Public(), k))(t)
	keyDER := must(x509.MarshalPKCS8PrivateKey(k))(t)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	cert, key := pair(t, "localhost")
	elsewhere, elsewhereKey := pair(t, "hooks.example")
	ours, oursKey := pair(t, "tattler")
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(must(os.ReadFile(ours))(t)) {
		t.Fatal("no certificate")
	}
	for _, tc := range []struct {
		why    string
		cert   string // the server's
		key    string
		mutual bool
		o      sink.TLS
		want   string // empty: success
	}{
		{"a CA that is not known", cert, key, false, sink.TLS{}, "certificate signed by unknown authority"},
		{"a CA that is", cert, key, false, sink.TLS{CA: cert}, ""},
		{"another CA", cert, key, false, sink.TLS{CA: elsewhere}, "certificate signed by unknown authority"},
		{"another name", elsewhere, elsewhereKey, false, sink.TLS{CA: elsewhere}, "doesn't contain any IP SANs"},
		{"another name that is expected", elsewhere, elsewhereKey, false, sink.TLS{CA: elsewhere, ServerName: "hooks.example"}, ""},
		{"insecure takes any", cert, key, false, sink.TLS{Insecure: true}, ""},
		{"who we are is asked for", cert, key, true, sink.TLS{CA: cert}, "post to https://"}, // the alert may come after the write has failed,
		{"and shown", cert, key, true, sink.TLS{CA: cert, Cert: ours, Key: oursKey}, ""},
		{"but not known", cert, key, true, sink.TLS{CA: cert, Cert: elsewhere, Key: elsewhereKey}, "post to https://"},
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // some handshakes are meant to fail
		server.TLS = &tls.Config{Certificates: []tls.Certificate{must(tls.LoadX509KeyPair(tc.cert, tc.key))(t)}}
		if tc.mutual {
			server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients
		}
		server.EnableHTTP2 = true
		server.StartTLS()
		s := newSink(t, Options{URL: server.URL, TLS: tc.o})
		n, err := s.Send(t.Context(), sinktest.Messages(0, 2))
		switch got, _ := verdict(err); {
		case tc.want == "" && (n != 2 || err != nil):
			t.Errorf("%s: %d, %v", tc.why, n, err)
		case tc.want != "" && (n != 0 || got != passing || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %d, %v; want a passing error with %q", tc.why, n, err, tc.want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}

// TestRenewedCertificate checks that the pair is read for each connection.
func TestRenewedCertificate(t *testing.T) {
	cert, key := pair(t, "localhost")
	old, oldKey := pair(t, "tattler")
	renewed, renewedKey := pair(t, "tattler")
	var serial []byte
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { serial = r.TLS.PeerCertificates[0].Raw }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{must(tls.LoadX509KeyPair(cert, key))(t)}, ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	s := newSink(t, Options{URL: server.URL, TLS: sink.TLS{CA: cert, Cert: old, Key: oldKey}})
	if _, err := s.Send(t.Context(), sinktest.Messages(0, 1)); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{renewed: old, renewedKey: oldKey} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	before := serial
	s.client.CloseIdleConnections()
	if _, err := s.Send(t.Context(), sinktest.Messages(0, 1)); err != nil {
		t.Fatal(err)
	}
	if string(before) == string(serial) {
		t.Error("the old certificate was shown again")
	}
}
