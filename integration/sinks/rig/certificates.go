package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
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

// Certificates are the certificates of the test's own authority, of a server at 127.0.0.1 and of a client, with
// their keys (PKCS #8). Each is the path of a PEM file that is deleted after the test. They are valid for an hour.
type Certificates struct {
	CA, Server, ServerKey, Client, ClientKey string
}

// NewCertificates creates new certificates, so that clients of other tests do not trust them.
func NewCertificates(t *testing.T) Certificates {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signs := Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	signed := func(serial int64, name string) (cert, key string) {
		c := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		k := Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		return write(name+".pem", "CERTIFICATE", Must(x509.CreateCertificate(rand.Reader, c, authority, k.Public(), signs))(t)),
			write(name+".key", "PRIVATE KEY", Must(x509.MarshalPKCS8PrivateKey(k))(t))
	}
	c := Certificates{CA: write("ca.pem", "CERTIFICATE", Must(x509.CreateCertificate(rand.Reader, authority, authority, signs.Public(), signs))(t))}
	c.Server, c.ServerKey = signed(2, "server")
	c.Client, c.ClientKey = signed(3, "client")
	return c
}

// Demanding returns a server configuration that requires a client certificate.
func (c Certificates) Demanding(t *testing.T) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(Must(os.ReadFile(c.CA))(t))
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
		Certificates: []tls.Certificate{Must(tls.LoadX509KeyPair(c.Server, c.ServerKey))(t)},
	}
}
