package devcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is a cluster's certificate authority. It signs the certificates of the API
// server and of its clients. Its files stay in the cluster's folder, so that a
// restarted cluster keeps its identities.
type pki struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// keyPair is a certificate with its key, PEM.
type keyPair struct{ cert, key []byte }

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// caFile, caKeyFile, serviceAccountKeyFile: PEM files of the cluster.
func (p *pki) caFile() string                { return p.path("ca.crt") }
func (p *pki) caKeyFile() string             { return p.path("ca.key") }
func (p *pki) serviceAccountKeyFile() string { return p.path("service-account.key") }

// openPKI reads the authority in dir, or makes one.
func openPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of certificates: %w", err)
	}
	p := &pki{dir: dir}
	var err error
	if p.key, err = openKey(p.caKeyFile()); err != nil {
		return nil, err
	}
	if _, err = openKey(p.serviceAccountKeyFile()); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(p.caFile())
	if errors.Is(err, fs.ErrNotExist) {
		data, err = p.makeCA()
	}
	if err != nil {
		return nil, fmt.Errorf("open certificate authority: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("open certificate authority: %s is not PEM", p.caFile())
	}
	if p.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, fmt.Errorf("parse certificate authority: %w", err)
	}
	return p, nil
}

// makeCA creates and writes the authority's certificate, PEM.
func (p *pki) makeCA() ([]byte, error) {
	t, err := template(pkix.Name{CommonName: "tattler-dev"})
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, p.key.Public(), p.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	data := encode("CERTIFICATE", der)
	return data, writeFileAtomic(p.caFile(), data, 0o600)
}

// server issues the API server's certificate, for 127.0.0.1 and for its names and
// address inside a cluster, and writes apiserver.crt and apiserver.key.
func (p *pki) server() (certFile, keyFile string, err error) {
	t, err := template(pkix.Name{CommonName: "kube-apiserver"})
	if err != nil {
		return "", "", err
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	t.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	pair, err := p.issue(t)
	if err != nil {
		return "", "", fmt.Errorf("issue server certificate: %w", err)
	}
	certFile, keyFile = p.path("apiserver.crt"), p.path("apiserver.key")
	if err := writeFileAtomic(certFile, pair.cert, 0o600); err != nil {
		return "", "", err
	}
	return certFile, keyFile, writeFileAtomic(keyFile, pair.key, 0o600)
}

// client issues a certificate that authenticates a user with groups.
func (p *pki) client(user string, groups []string) (keyPair, error) {
	t, err := template(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return keyPair{}, err
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	pair, err := p.issue(t)
	if err != nil {
		return keyPair{}, fmt.Errorf("issue certificate of user %q: %w", user, err)
	}
	return pair, nil
}

// issue generates a key and signs t for it.
func (p *pki) issue(t *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate key: %w", err)
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, p.cert, key.Public(), p.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign certificate: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: encode("CERTIFICATE", der), key: keyPEM}, nil
}

// template is a certificate for some years. It is valid since an hour ago, in case
// the clock is set back a little.
func template(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(5, 0, 0)}, nil
}

// openKey reads the key in path, or makes one there.
func openKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("generate key: %w", err)
		}
		data, err := encodeKey(key)
		if err != nil {
			return nil, err
		}
		return key, writeFileAtomic(path, data, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("read key: %s is not PEM", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse key %s: %w", path, err)
	}
	return key, nil
}

// encodeKey encodes a key as SEC 1, which Kubernetes also reads for service accounts.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
