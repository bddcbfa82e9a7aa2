package request

import (
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// streamWindow is how many bytes of an answer the server may be ahead of its reader over HTTP/2. A list that
// comes quicker than it is stored fills it: Go's 4 MiB are more than 8,000 pods take at rest. It bounds one
// stream's speed to 10 MB/s where an answer takes 100 ms.
const streamWindow = 1 << 20

// connect is rest.HTTPClientFor with connections that are shared with nobody, so that what is set here
// concerns us alone.
func connect(cfg *rest.Config) (*http.Client, error) {
	if cfg.Transport == nil {
		if cfg.Dial == nil { // with one, client-go makes a transport for it alone; this one is its own
			cfg.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
		}
		wrap := cfg.WrapTransport
		cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
			if t := base(rt); t != nil && t.HTTP2 == nil { // before the first connection, which reads it
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

// base is the transport behind wrappers; nil if one hides it.
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
