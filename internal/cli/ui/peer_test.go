package ui

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestOwnOrders: another user of the machine may look at the page, but gives no orders.
func TestOwnOrders(t *testing.T) {
	passed := 0
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ })
	foreign := errors.New("another user")
	for _, tc := range []struct {
		why, method, remote string
		err                 error
		want                int
	}{
		{"a page", http.MethodGet, "127.0.0.1:4000", foreign, http.StatusOK},
		{"an order of this user", http.MethodPost, "127.0.0.1:4000", nil, http.StatusOK},
		{"an order of another", http.MethodPost, "127.0.0.1:4000", foreign, http.StatusForbidden},
		{"an order from nowhere", http.MethodPost, "", nil, http.StatusForbidden},
	} {
		passed = 0
		h := ownOrders(next, func(client, server netip.AddrPort) error {
			if client.String() != tc.remote || server.String() != "127.0.0.1:80" {
				t.Errorf("%s: %s to %s", tc.why, client, server)
			}
			return tc.err
		})
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}))
		r := httptest.NewRequestWithContext(ctx, tc.method, "/status/order", nil)
		r.RemoteAddr = tc.remote
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.want || passed > 0 != (tc.want == http.StatusOK) {
			t.Errorf("%s: %d, passed on %d times", tc.why, w.Code, passed)
		}
		if tc.want != http.StatusOK && !strings.Contains(w.Body.String(), "use tattler sinks") && tc.err != nil {
			t.Errorf("%s: %s", tc.why, w.Body)
		}
	}
}
