package sink

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
)

// Prober is a sink that can check its receiver without a message.
type Prober interface {
	Sink
	// Probe reaches the receiver, with the credentials if the protocol allows that without a message. It sends no
	// message, and changes nothing there. ErrNotProbed means that only a message could show it. No error text contains a
	// credential. Like Send, it returns soon after its context ends.
	Probe(ctx context.Context) error
}

// ErrNotProbed is the error of a Probe that cannot reach the receiver without a message.
var ErrNotProbed = errors.New("only a message shows whether the receiver can be reached")

// ProbeURL requests the root of a URL's host with HEAD: any answer shows that it can be reached. The path and the query,
// which may be credentials, are not sent. Its error has no URL.
func ProbeURL(ctx context.Context, c *http.Client, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("not a URL (not shown: it may contain a credential)")
	}
	root := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, root.String(), http.NoBody)
	if err != nil {
		return NoURL(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return NoURL(err)
	}
	return resp.Body.Close()
}

// ProbeTCP connects to HOST:PORT, and makes the TLS handshake if a configuration is given.
func ProbeTCP(ctx context.Context, address string, config *tls.Config) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil || config == nil {
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	defer conn.Close()
	return tls.Client(conn, config).HandshakeContext(ctx)
}
