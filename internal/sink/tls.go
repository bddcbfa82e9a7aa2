package sink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS configures which servers to trust and the client certificate to present.
type TLS struct {
	// CA is a PEM file of certificates to trust instead of the system's.
	CA string `yaml:"ca"`
	// Cert and Key are PEM files with the client certificate and its key. They are read for each connection, so that
	// they can be renewed.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ServerName is the name that the server's certificate must have, instead of the host in its address.
	ServerName string `yaml:"serverName"`
	// Insecure trusts any certificate.
	Insecure bool `yaml:"insecure"`
}

// Validate returns an error if the options are invalid. It reads no file.
func (t TLS) Validate() error {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("cert and key belong together")
	case t.Insecure && (t.CA != "" || t.ServerName != ""):
		return errors.New("insecure trusts any certificate, so ca and serverName would have no effect")
	}
	return nil
}

// Client reads the files and returns the client's TLS configuration.
func (t TLS) Client() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s contains no PEM certificate", t.CA)
		}
	}
	if t.Cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
			if err != nil {
				return nil, fmt.Errorf("cert and key: %w", err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return c, nil
}
