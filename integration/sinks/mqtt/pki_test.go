package mqtt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pki is a certificate authority with a server and a client, as files.
type pki struct {
	ca             string
	server, client pair
}

type pair struct{ cert, key string }

func newPKI(t *testing.T) pki {
	t.Helper()
	dir := t.TempDir()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := pki{ca: write("ca.pem", "CERTIFICATE", must(x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key))(t))}
	for i, to := range []*pair{&p.server, &p.client} {
		name := []string{"server", "client"}[i]
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		k := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		to.cert = write(name+".pem", "CERTIFICATE", must(x509.CreateCertificate(rand.Reader, c, authority, k.Public(), key))(t))
		to.key = write(name+".key", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(k))(t))
	}
	return p
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
