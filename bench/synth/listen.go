package synth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Address is where a server listens.
type Address struct {
	// URL is the API server's, and CAFile the PEM file with its authority.
	URL, CAFile string
	// Control is the argument of [NewControl].
	Control string
}

// Listen serves until ctx ends. It writes its certificate into dir and calls ready with its address.
func (s *Server) Listen(ctx context.Context, dir string, ready func(Address)) error {
	cert, err := newCertificate(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return err
	}
	api, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", errors.Join(err, api.Close()))
	}
	quiet := log.New(io.Discard, "", 0) // children come and go
	servers := []*http.Server{
		{Handler: s, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: quiet, ReadHeaderTimeout: time.Minute},
		{Handler: s.control(), ErrorLog: quiet, ReadHeaderTimeout: time.Minute},
	}
	ends := make(chan error, len(servers))
	go func() { ends <- servers[0].ServeTLS(api, "", "") }()
	go func() { ends <- servers[1].Serve(control) }()
	ready(Address{URL: "https://" + api.Addr().String(), CAFile: filepath.Join(dir, "ca.pem"), Control: "http://" + control.Addr().String()})
	running := len(servers)
	var errs []error
	select {
	case <-ctx.Done():
	case err := <-ends:
		errs, running = append(errs, err), running-1
	}
	for _, server := range servers {
		errs = append(errs, server.Close())
	}
	for range running {
		if err := <-ends; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// newCertificate creates a self-signed certificate and writes it to path.
func newCertificate(path string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make key: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "synth"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(7 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return tls.Certificate{}, fmt.Errorf("write certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// control handles the requests of [Control].
func (s *Server) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /happen", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.URL.Query().Get("count"))
		objects, err2 := strconv.Atoi(r.URL.Query().Get("objects"))
		if err != nil || err2 != nil || count < 0 || objects < 0 {
			http.Error(w, "count and objects are numbers", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(strconv.FormatUint(s.happen(count, objects), 10))
	})
	mux.HandleFunc("POST /expire", func(http.ResponseWriter, *http.Request) { s.expire() })
	mux.HandleFunc("POST /requests", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		list := slices.Clone(s.requests)
		s.requests = nil
		s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(list)
	})
	return mux
}

// Control controls a server in another process.
type Control struct{ address string }

// NewControl returns a control for an address.
func NewControl(address string) *Control { return &Control{address} }

// Update makes count updates happen at once, round-robin over a number of pods. It returns the
// resource version of the last update.
func (c *Control) Update(ctx context.Context, count, pods int) (version string, err error) {
	err = c.post(ctx, "/happen", url.Values{"count": {strconv.Itoa(count)}, "objects": {strconv.Itoa(pods)}}, &version)
	return version, err
}

// Churn creates and deletes that many pods at once. No two pods of one name exist at the same time. It returns
// the resource version of the last deletion.
func (c *Control) Churn(ctx context.Context, pods int) (version string, err error) {
	err = c.post(ctx, "/happen", url.Values{"count": {strconv.Itoa(2 * pods)}, "objects": {"0"}}, &version)
	return version, err
}

// Expire ends every watch and drops the history, so that clients must list again.
func (c *Control) Expire(ctx context.Context) error { return c.post(ctx, "/expire", nil, nil) }

// Requests returns the requests since the last call: paths and queries.
func (c *Control) Requests(ctx context.Context) ([]string, error) {
	var list []string
	err := c.post(ctx, "/requests", nil, &list)
	return list, err
}

func (c *Control) post(ctx context.Context, path string, q url.Values, result any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+path+"?"+q.Encode(), nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("control server: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("control server: %s", resp.Status)
	}
	if result == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(result); err != nil {
		return fmt.Errorf("control server: read answer: %w", err)
	}
	return nil
}
