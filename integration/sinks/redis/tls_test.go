package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/redis"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestTLSAndCredentials: who we are, whom we trust, and what an error shows of it.
func TestTLSAndCredentials(t *testing.T) {
	const secret = "hunter2-and-more"
	cert, key := pair(t)
	ours, oursKey := pair(t)
	port := freePort(t)
	s := newServer(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ours)
	s.do("acl setuser t on >" + secret + " ~tattler +xadd +multi +exec")
	for _, tc := range []struct {
		why, password, want string
		tls                 sink.TLS
	}{
		{"all is right, with no right too many", secret, "", sink.TLS{CA: cert, Cert: ours, Key: oursKey}},
		{"a CA that is not known", secret, "certificate signed by unknown authority", sink.TLS{Cert: ours, Key: oursKey}},
		{"nobody", secret, "add to stream of rediss://", sink.TLS{CA: cert}},
		{"another password", secret + "no", "user or password are wrong", sink.TLS{CA: cert, Cert: ours, Key: oursKey}},
	} {
		n, err := send(t, redis.Options{URL: "rediss://t:" + tc.password + "@127.0.0.1:" + port, TLS: tc.tls}, sinktest.Messages(0, 2))
		var permanent *sink.PermanentError
		if (err == nil) != (tc.want == "") || (n == 2) != (err == nil) ||
			err != nil && (errors.As(err, &permanent) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %d, %v, want %q", tc.why, n, err, tc.want)
		}
	}
	if n := len(s.entries("tattler")); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// pair makes a certificate for loopback and its key, as files. It is its own authority.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "tattler"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
