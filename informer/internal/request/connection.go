package request

import (
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// streamWindow is the number of bytes that the server may send ahead of the reader over HTTP/2. A list that
// arrives faster than it is stored fills it: Go's default of 4 MiB exceeds the size of 8,000 packed pods. With
// a round trip of 100 ms, the window limits one stream to 10 MB/s.
const streamWindow = 1 << 20

// connect is rest.HTTPClientFor with unshared connections, so that settings made here do not affect other
// clients.
func connect(cfg *rest.Config) (*http.Client, error) {
	if cfg.Transport == nil {
		if cfg.Dial == nil { // with Dial set, client-go makes an unshared transport
			cfg.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
		}
		wrap := cfg.WrapTransport
		cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
			if t := base(rt); t != nil && t.HTTP2 == nil { // before the first connection, which reads the settings
				t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow}
			}
			if wrap != nil {
				rt = wrap(rt)
			}
			return rt
		}
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare connection: %w", err)
	}
	return client, nil
}

// base returns the transport below the wrappers; nil if one hides it.
func base(rt http.RoundTripper) *http.Transport {
	for {
		if t, ok := rt.(*http.Transport); ok {
			return t
		}
		w, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			return nil
		}
		rt = w.WrappedRoundTripper()
	}
}
