package incluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// upgrade sends the request for a port-forward. It ends by ctx's deadline, which must be set. client-go's own dialers take
// no context and have no time limit.
func upgrade(ctx context.Context, config *rest.Config, u *url.URL) (httpstream.Connection, error) {
	conn, err := upgradeWebSocket(ctx, config, u)
	// As kubectl does: an older API server, or a proxy in between, may not speak WebSocket.
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		return upgradeSPDY(ctx, config, u)
	}
	return conn, err
}

// upgradeWebSocket tunnels SPDY through WebSocket. While it waits for the answer, only the deadline of ctx ends it.
func upgradeWebSocket(ctx context.Context, config *rest.Config, u *url.URL) (httpstream.Connection, error) {
	rt, holder, err := websocket.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(rt, holder, r, constants.WebsocketsSPDYTunnelingPrefix+portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	return spdy.NewClientConnectionWithPings(portforward.NewTunnelingConnection("client", conn), portforward.PingPeriod)
}

// pingEvery is how often an idle SPDY connection is used, so that load balancers keep it: as often as client-go's.
const pingEvery = 5 * time.Second

// upgradeSPDY speaks SPDY without WebSocket. It sends the request with net/http, which watches ctx until the answer is there.
func upgradeSPDY(ctx context.Context, config *rest.Config, u *url.URL) (httpstream.Connection, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	var one http.Protocols
	one.SetHTTP1(true) // HTTP/2 has no upgrades
	rt, err := rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: tls, Proxy: proxy, Protocols: &one, DisableKeepAlives: true})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	r.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	r.Header.Set(httpstream.HeaderProtocolVersion, portforward.PortForwardProtocolV1Name)
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || resp.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(resp.Header.Get(httpstream.HeaderUpgrade), spdy.HeaderSpdy31) {
		defer resp.Body.Close()
		return nil, refused(resp)
	}
	return spdy.NewClientConnectionWithPings(struct {
		io.ReadWriteCloser
		endless
	}{ReadWriteCloser: body}, pingEvery)
}

// refused returns the error for an answer that is not an upgrade.
func refused(resp *http.Response) error {
	var status meta.Status
	if resp.StatusCode != http.StatusSwitchingProtocols {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		if err != nil {
			return fmt.Errorf("the API server answered %s: %w", resp.Status, err)
		}
		if json.Unmarshal(b, &status) == nil && status.Message != "" {
			return &refusal{resp.StatusCode, status.Message}
		}
	}
	return &refusal{resp.StatusCode, resp.Status}
}
