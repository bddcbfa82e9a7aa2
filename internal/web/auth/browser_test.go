package auth

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"

	"context"

	authentication "k8s.io/api/authentication/v1"
)

// TestOpen: an open page serves this machine, and no one who comes by a trick.
func TestOpen(t *testing.T) {
	a := mustNew(t, Options{Address: "127.0.0.1:8081"})
	from := func(remote, own string) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request {
			r.RemoteAddr = remote
			at, err := net.ResolveTCPAddr("tcp", own)
			if err != nil {
				t.Fatal(err)
			}
			return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
		}
	}
	for _, tc := range []struct {
		why, host string
		headers   []string
		change    func(*http.Request) *http.Request
		code      int
	}{
		{"localhost", "localhost:8081", nil, nil, 200},
		{"in capitals, with the root's dot", "LOCALHOST.", nil, nil, 200},
		{"an address", "127.0.0.1:8081", nil, nil, 200},
		{"another of them", "127.1.2.3", nil, nil, 200},
		{"IPv6", "[::1]:8081", nil, nil, 200},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]", nil, nil, 200},
		{"a name that an attacker points here (DNS rebinding)", "evil.example:8081", nil, nil, 421},
		{"one that begins like ours", "localhost.evil.example", nil, nil, 421},
		{"one that begins like our address", "127.0.0.1.evil.example", nil, nil, 421},
		{"this machine's name", "laptop.local", nil, nil, 421},
		{"the unspecified address, which some systems route here", "0.0.0.0:8081", nil, nil, 421},
		{"another machine's address", "10.0.0.7:8081", nil, nil, 421},
		{"no host", "", nil, nil, 421},
		{"a host in a header of proxies is not read", "evil.example", []string{"X-Forwarded-Host: localhost"}, nil, 421},
		{"a proxy forwards others", "localhost:8081", []string{"X-Forwarded-For: 8.8.8.8"}, nil, 403},
		{"also with an empty header", "localhost:8081", []string{"X-Forwarded-For: "}, nil, 403},
		{"a proxy with the header of RFC 7239", "localhost:8081", []string{"Forwarded: for=8.8.8.8"}, nil, 403},
		{"a proxy that names a user", "localhost:8081", []string{"X-Remote-User: alice"}, nil, 403},
		{"any proxy", "localhost:8081", []string{"Via: 1.1 x"}, nil, 403},
		{"a token is not needed, and not read", "localhost:8081", []string{"Authorization: Bearer x"}, nil, 200},
		{"a client elsewhere", "localhost:8081", nil, from("10.0.0.7:1", "127.0.0.1:8081"), 403},
		{"a listener elsewhere", "localhost:8081", nil, from("127.0.0.1:1", "10.0.0.1:8081"), 403},
		{"an unknown listener", "localhost:8081", nil, func(r *http.Request) *http.Request {
			return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, nil))
		}, 403},
		{"IPv6 on both ends", "[::1]:8081", nil, from("[::1]:1", "[::1]:8081"), 200},
	} {
		r := request(t, "GET", tc.host, nil, tc.headers...)
		if tc.change != nil {
			r = tc.change(r)
		}
		w := answered(a, r)
		if w.Code != tc.code || (tc.code == 200) != strings.HasPrefix(body(w), "this machine") {
			t.Errorf("%s: %d %s, want %d", tc.why, w.Code, body(w), tc.code)
		}
	}
	may, err := (&Viewer{all: true}).May(t.Context(), targets("secrets@a nodes"))
	if err != nil || !may[0] || !may[1] {
		t.Errorf("this machine may see %v, %v", may, err)
	}
	if may, err := (&Viewer{all: true}).MayDo(t.Context(), ManageSinks); !may || err != nil {
		t.Errorf("this machine may act: %t, %v", may, err)
	}
}

// TestHost: with authentication, the certificate's names and web.hosts are ours.
func TestHost(t *testing.T) {
	ca := newCA(t, "ca")
	cert, key := ca.serving("tattler.example.com", "*.apps.example.com", "10.1.2.3", "fd00::3")
	f := &fake{tokens: map[string]authentication.UserInfo{"good": {Username: "bob"}}}
	elsewhere := Options{Address: ":8443", Cert: cert, Key: key, Tokens: true, Reviewer: f, Hosts: []string{"proxy.example.com", "10.9.9.9"}}
	local := Options{Address: "localhost:8443", Tokens: true, Reviewer: f}
	for _, tc := range []struct {
		why, host string
		options   Options
		ours      bool
	}{
		{"the certificate's name", "tattler.example.com:8443", elsewhere, true},
		{"one of its wildcard", "x.apps.example.com", elsewhere, true},
		{"its address", "10.1.2.3:8443", elsewhere, true},
		{"its address of IPv6", "[fd00::3]:8443", elsewhere, true},
		{"a configured name", "Proxy.example.com", elsewhere, true},
		{"a configured address", "10.9.9.9", elsewhere, true},
		{"another name", "evil.example", elsewhere, false},
		{"another address", "10.1.2.4", elsewhere, false},
		{"loopback is not ours there", "localhost:8443", elsewhere, false},
		{"nor is nothing", "", elsewhere, false},
		{"a loopback page", "127.0.0.1:8443", local, true},
		{"another name for it", "evil.example", local, false},
	} {
		w := answered(mustNew(t, tc.options), request(t, "GET", tc.host, nil, "Authorization: Bearer good"))
		if want := map[bool]int{true: 200, false: 421}[tc.ours]; w.Code != want {
			t.Errorf("%s: %d %s, want %d", tc.why, w.Code, body(w), want)
		}
	}
}

// TestSites: what pages of other sites may cause.
func TestSites(t *testing.T) {
	ca := newCA(t, "ca")
	cert, key := ca.serving("t.example")
	f := &fake{tokens: map[string]authentication.UserInfo{"good": {Username: "bob"}}}
	a := mustNew(t, Options{Address: ":443", Cert: cert, Key: key, Tokens: true, ClientCA: ca.file, Reviewer: f})
	// The browser presents the certificate by itself, to any page's request.
	browser := []tls.Certificate{ca.issue("alice", nil, nil)}
	const bearer = "Authorization: Bearer good"
	for _, tc := range []struct {
		why, method string
		headers     []string
		code        int
	}{
		{"our page posts", "POST", []string{"Sec-Fetch-Site: same-origin", "Origin: https://t.example"}, 200},
		{"our page, in an old browser", "POST", []string{"Origin: https://t.example"}, 200},
		{"another site posts", "POST", []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, 403},
		{"another site, in an old browser", "POST", []string{"Origin: https://evil.example"}, 403},
		{"a neighbour of ours posts", "POST", []string{"Sec-Fetch-Site: same-site", "Origin: https://evil.t.example"}, 403},
		{"a sandboxed frame posts", "POST", []string{"Origin: null"}, 403},
		{"an extension, or the address bar", "POST", []string{"Sec-Fetch-Site: none"}, 403},
		{"no browser, with a certificate", "POST", nil, 403},
		{"no browser, with a token", "POST", []string{bearer}, 200},
		{"another site cannot send a token, and is refused with it", "POST", []string{"Sec-Fetch-Site: cross-site", bearer}, 403},
		{"a link on another site", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200},
		{"a frame on another site", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403},
		{"a script of another site measures time", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"our page reads", "GET", []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"}, 200},
		{"a head", "HEAD", nil, 200},
		{"another method", "PUT", nil, 405},
		{"a preflight", "OPTIONS", []string{"Origin: https://evil.example", "Access-Control-Request-Method: POST"}, 405},
		{"a trace", "TRACE", nil, 405},
	} {
		w := answered(a, request(t, tc.method, "t.example", browser, tc.headers...))
		if w.Code != tc.code {
			t.Errorf("%s: %d %s, want %d", tc.why, w.Code, body(w), tc.code)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", tc.why, name, got)
			}
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: another site may read the answer: %s", tc.why, name)
			}
		}
	}
}
