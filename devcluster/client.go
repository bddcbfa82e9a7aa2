package devcluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// statusError is a response other than 2xx.
type statusError struct {
	code int
	body string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.code, http.StatusText(e.code), strings.TrimSpace(e.body))
}

// isStatus reports whether err is a response with that code.
func isStatus(err error, code int) bool {
	se, ok := errors.AsType[*statusError](err)
	return ok && se.code == code
}

// newAPIClient returns a client that trusts the cluster's authority. It does not
// reuse connections, which may be those of a server that has ended.
func newAPIClient(caFile string) (*http.Client, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true},
		Timeout:   30 * time.Second,
	}, nil
}

// api sends a request to the API server as the admin. body and result are JSON,
// or nil.
func (c *Cluster) api(ctx context.Context, method, path string, body, result any) error {
	return call(ctx, c.http, method, c.URL()+path, c.token, body, result)
}

// etcd sends a request to etcd's JSON gateway.
func (c *Cluster) etcd(ctx context.Context, path string, body, result any) error {
	return call(ctx, c.http, http.MethodPost, c.EtcdURL()+path, "", body, result)
}

func call(ctx context.Context, client *http.Client, method, url, token string, body, result any) error {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return &statusError{code: resp.StatusCode, body: string(data)}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}
