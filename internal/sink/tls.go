package sink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS says whom to trust and who we are.
type TLS struct {
	// CA is a file of certificates in PEM that take the place of the system's.
	CA string `yaml:"ca"`
	// Cert and Key are files in PEM that show who we are. They are read for each connection, so that
	// they can be renewed.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ServerName is the name that the server's certificate must have, instead of the URL's host.
	ServerName string `yaml:"serverName"`
	// Insecure trusts any certificate.
	Insecure bool `yaml:"insecure"`
}

// Validate says what is wrong with the options; it reads no file.
func (t TLS) Validate() error {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("cert and key belong together")
	case t.Insecure && (t.CA != "" || t.ServerName != ""):
		return errors.New("insecure trusts any certificate; ca and serverName would not be looked at")
	}
	return nil
}

// Client reads the files, and makes of the options what a client needs.
func (t TLS) Client() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no certificate in PEM", t.CA)
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
