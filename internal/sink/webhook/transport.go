package webhook

import (
	"net"
	"net/http"
	"time"
)

func newTransport(o Options) (*http.Transport, error) {
	c, err := o.TLS.Client()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        c,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    o.Parallel,
		MaxConnsPerHost:        o.Parallel,
		IdleConnTimeout:        90 * time.Second,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxResponseHeaderBytes: 64 << 10,
	}, nil
}
