package sink

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// HTTPClient returns a client for one host with at most so many connections, or any number if 0. It uses the proxy of the environment,
// and follows no redirects: a message must not reach another server.
func HTTPClient(config *tls.Config, connections int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    30 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    connections,
			MaxConnsPerHost:        connections,
			IdleConnTimeout:        90 * time.Second,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NoURL returns the error of a request without its URL, which may contain a credential.
func NoURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// AddProxies adds the proxies of the environment: net/http quotes an invalid one.
func (m *Mask) AddProxies() {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		m.Add(MinSecret, os.Getenv(name))
	}
}
