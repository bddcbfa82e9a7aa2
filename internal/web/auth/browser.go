package auth

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// policy lets the page load only what this server serves, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// harden sets the headers that every answer has. A handler may replace Cache-Control, for what is not secret. The
// referrer policy is not no-referrer, because browsers then send forms without their origin.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// problem is a refused request.
type problem struct {
	code int
	text string
}

// check refuses requests that no page of ours makes.
func (a *Auth) check(r *http.Request) *problem {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		return &problem{http.StatusMethodNotAllowed, "only GET, HEAD and POST are served"}
	}
	if !a.serves(r.Host) {
		return &problem{http.StatusMisdirectedRequest, a.misdirected()}
	}
	if a.open {
		if p := local(r); p != nil {
			return p
		}
	}
	if r.Method == http.MethodPost {
		if a.csrf.Check(r) != nil || !sameOrigin(r) {
			return &problem{http.StatusForbidden, "a POST must come from this server's own pages, or carry a bearer token"}
		}
	} else if !isolated(r) {
		return &problem{http.StatusForbidden, "another site's page requested this"}
	}
	return nil
}

func (a *Auth) misdirected() string {
	if a.open {
		return "this server is for loopback names and addresses, such as localhost"
	}
	return "the Host header has a name that this server does not have: add it to web.hosts, or to the certificate"
}

// serves reports whether a request's host is ours. A web page of another site could point its own name here (DNS
// rebinding); its requests carry that name.
func (a *Auth) serves(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	switch {
	case host == "":
		return false
	case a.loopback && loopbackHost(host):
		return true
	case slices.ContainsFunc(a.o.Hosts, func(h string) bool { return strings.EqualFold(h, host) }):
		return true
	}
	return a.pair != nil && named(a.pair.get().leaf, host)
}

func named(leaf *x509.Certificate, host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		host = "[" + host + "]" // a literal address
	}
	return leaf.VerifyHostname(host) == nil
}

// proxied are headers that proxies add. On an open page they mean that a proxy lets others reach it.
var proxied = []string{
	"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server",
	"X-Real-Ip", "X-Remote-User", "X-Forwarded-User", "X-Original-Url", "True-Client-Ip", "Cf-Connecting-Ip",
}

// local refuses requests to an open page that do not come from this machine: both ends of the connection must be
// loopback addresses, and no proxy may be in between. The addresses are checked although the listener is on
// loopback, because some systems route loopback addresses from outside (route_localnet of Linux).
func local(r *http.Request) *problem {
	own, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if own == nil || !isLoopback(own.String()) || !isLoopback(r.RemoteAddr) {
		return &problem{http.StatusForbidden, "without authentication, only this machine is served"}
	}
	for _, name := range proxied {
		if _, ok := r.Header[name]; ok {
			return &problem{http.StatusForbidden, "a proxy forwarded this request (" + name + "), so it may come from another machine: configure authentication (web.tokens, web.clientCA or web.requestHeader)"}
		}
	}
	return nil
}

func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// sameOrigin reports whether one of our pages sent a request, or a client that is not a browser: that proves it by
// a bearer token, which browsers do not send by themselves.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		_, present, err := bearer(r.Header)
		return present && err == nil
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// isolated reports whether a request that only reads is made by our pages, or is a link that was followed. A page of
// another site could otherwise learn from the time that an answer takes.
func isolated(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // no browser; our page; the address bar
		return true
	}
	dest := r.Header.Get("Sec-Fetch-Dest")
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && (dest == "document" || dest == "")
}
