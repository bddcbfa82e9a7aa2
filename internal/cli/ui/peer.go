package ui

import (
	"net"
	"net/http"
	"net/netip"
)

// ownOrders passes on requests, but of those that give orders only those of this user's programs, and of root's. Everyone on
// the machine can connect to the page; the daemon's socket, through which it gives orders, is for this user alone.
func ownOrders(next http.Handler, check func(client, server netip.AddrPort) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		client, err := netip.ParseAddrPort(r.RemoteAddr)
		server, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if err != nil || server == nil {
			http.Error(w, "the connection has no address", http.StatusForbidden)
			return
		}
		at, err := netip.ParseAddrPort(server.String())
		if err == nil {
			err = check(client, at)
		}
		if err != nil {
			http.Error(w, "the order was not given: "+err.Error()+"; use tattler sinks", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
