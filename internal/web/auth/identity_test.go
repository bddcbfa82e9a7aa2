package auth

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
)

// TestCredentials has every way to be accepted or refused.
func TestCredentials(t *testing.T) {
	clients, proxies, others := newCA(t, "clients"), newCA(t, "proxies"), newCA(t, "others")
	cert, key := others.serving("tattler.example.com", "10.1.2.3")
	f := &fake{tokens: map[string]authentication.UserInfo{
		"good": {Username: "bob", UID: "7", Groups: []string{"dev", authenticated}}, "anonymous": {Username: anonymous}, "nameless": {},
	}}
	all := Options{
		Address: ":8443", Cert: cert, Key: key, Tokens: true, ClientCA: clients.file, Reviewer: f,
		RequestHeader: RequestHeader{CA: proxies.file, AllowedNames: []string{"front"}},
	}
	a := mustNew(t, all)
	tokensAlone, certsAlone, proxyAlone := all, all, all
	tokensAlone.ClientCA, tokensAlone.RequestHeader = "", RequestHeader{}
	certsAlone.Tokens, certsAlone.RequestHeader = false, RequestHeader{}
	proxyAlone.Tokens, proxyAlone.ClientCA = false, ""
	alone := map[string]*Auth{"tokens": mustNew(t, tokensAlone), "certs": mustNew(t, certsAlone), "proxy": mustNew(t, proxyAlone)}

	of := func(c tls.Certificate) []tls.Certificate { return []tls.Certificate{c} }
	alice := of(clients.issue("alice", []string{"ops", "dev"}, nil))
	front := of(proxies.issue("front", nil, nil))
	expired := of(clients.issue("alice", nil, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }))
	early := of(clients.issue("alice", nil, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }))
	serving := of(clients.issue("alice", nil, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }))
	expiredFront := of(proxies.issue("front", nil, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }))
	const good, user = "Authorization: Bearer good", "X-Remote-User: carol"
	for _, tc := range []struct {
		why     string
		auth    string // which Auth; empty: all credentials
		certs   []tls.Certificate
		headers []string
		want    string // the viewer; or a part of the refusal, after 401
	}{
		{"nothing", "", nil, nil, "401 use a bearer token or a client certificate or the authenticating proxy"},
		{"a token", "", nil, []string{good}, "bob 7 dev,system:authenticated"},
		{"the scheme in other letters", "", nil, []string{"Authorization: bearer  good"}, "bob 7 dev,system:authenticated"},
		{"a wrong token", "", nil, []string{"Authorization: Bearer bad"}, "401 not valid here"},
		{"an empty token", "", nil, []string{"Authorization: Bearer "}, "401 malformed"},
		{"a token with a space", "", nil, []string{"Authorization: Bearer good good"}, "401 malformed"},
		{"two tokens", "", nil, []string{good, good}, "401 more than one"},
		{"a token of the anonymous user", "", nil, []string{"Authorization: Bearer anonymous"}, "401 names no user"},
		{"a token of no user", "", nil, []string{"Authorization: Bearer nameless"}, "401 names no user"},
		{"another scheme is no credential", "", nil, []string{"Authorization: Basic Z29vZDo="}, "401 authentication is required"},
		{"a token where tokens are not accepted", "certs", nil, []string{good}, "401 not accepted"},

		{"a client certificate", "", alice, nil, "alice  dev,ops,system:authenticated"},
		{"an expired one", "", expired, nil, "401 client certificate is not valid"},
		{"one that is not valid yet", "", early, nil, "401 client certificate is not valid"},
		{"one for servers", "", serving, nil, "401 client certificate is not valid"},
		{"one of another CA", "", of(others.issue("alice", nil, nil)), nil, "401 client certificate is not valid"},
		{"one of the proxies' CA is no user", "", of(proxies.issue("alice", nil, nil)), nil, "401 client certificate is not valid"},
		{"one without a name", "", of(clients.issue("", []string{"system:masters"}, nil)), nil, "401 names no user"},
		{"one of the anonymous user", "", of(clients.issue(anonymous, nil, nil)), nil, "401 names no user"},
		{"one where certificates are not accepted", "proxy", alice, nil, "401 from the authenticating proxy alone"},
		{"the proxy's is no user of the clients' CA", "", of(clients.issue("front", nil, nil)), []string{user}, "401 another's"},

		{"the proxy", "", front, []string{user, "X-Remote-Group: a", "X-Remote-Group: b", "X-Remote-Uid: 9"}, "carol 9 a,b,system:authenticated"},
		{"the proxy names no one", "", front, []string{"X-Remote-Group: system:masters"}, "401 the proxy names no user"},
		{"the proxy names the anonymous user", "", front, []string{"X-Remote-User: " + anonymous}, "401 names no user"},
		{"the proxy alone is no viewer", "", front, nil, "401 authentication is required"},
		{"the proxy adds its header to the client's", "", front, []string{"X-Remote-User: admin", user}, "401 occurs more than once"},
		{"the proxy adds its UID to the client's", "", front, []string{user, "X-Remote-Uid: 0", "X-Remote-Uid: 9"}, "401 occurs more than once"},
		{"the proxy's certificate has expired", "", expiredFront, []string{user}, "401 another's"},
		{"headers without a certificate", "", nil, []string{user}, "401 authenticating proxy alone"},
		{"headers beside a token", "", nil, []string{good, user}, "401 authenticating proxy alone"},
		{"a group beside a token", "", nil, []string{good, "X-Remote-Group: system:masters"}, "401 authenticating proxy alone"},
		{"an extra beside a token", "", nil, []string{good, "X-Remote-Extra-Scopes: all"}, "401 authenticating proxy alone"},
		{"headers with a client's certificate", "", alice, []string{user}, "401 another's"},
		{"headers with a certificate of the right CA and another name", "", of(proxies.issue("back", nil, nil)), []string{user}, "401 another's"},
		{"headers with a certificate of the right name and another CA", "", of(others.issue("front", nil, nil)), []string{user}, "401 another's"},
		{"headers where there is no proxy are not read", "tokens", nil, []string{good, user}, "bob 7 dev,system:authenticated"},
		{"and do not authenticate", "tokens", nil, []string{user}, "401 use a bearer token"},

		{"the certificate counts before the token", "", alice, []string{good}, "alice  dev,ops,system:authenticated"},
		{"the proxy's headers before the token", "", front, []string{good, user}, "carol  system:authenticated"},
		{"the proxy passes the token on", "", front, []string{good}, "bob 7 dev,system:authenticated"},
		{"a wrong token beside a certificate", "", alice, []string{"Authorization: Bearer bad"}, "401 not valid here"},
		{"a wrong certificate beside a token", "", expired, []string{good}, "401 client certificate is not valid"},
		{"a wrong token from the proxy", "", front, []string{user, "Authorization: Bearer bad"}, "401 not valid here"},
		{"what a proxy used itself", "", front, []string{user, "Authorization: Basic eDp5"}, "carol  system:authenticated"},
	} {
		by := a
		if tc.auth != "" {
			by = alone[tc.auth]
		}
		w := answered(by, request(t, "GET", "tattler.example.com:8443", tc.certs, tc.headers...))
		want, refused := strings.CutPrefix(tc.want, "401 ")
		switch {
		case refused && (w.Code != http.StatusUnauthorized || !strings.Contains(body(w), want)):
			t.Errorf("%s: %d %s, want a refusal with %q", tc.why, w.Code, body(w), want)
		case !refused && (w.Code != http.StatusOK || body(w) != want):
			t.Errorf("%s: %d %s, want %q", tc.why, w.Code, body(w), want)
		}
		if refused && (w.Header().Get("WWW-Authenticate") != "") != by.o.Tokens {
			t.Errorf("%s: WWW-Authenticate is %q", tc.why, w.Header().Get("WWW-Authenticate"))
		}
	}
}

// TestExtra: attributes of a user reach the access review.
func TestExtra(t *testing.T) {
	ca := newCA(t, "proxies")
	cert, key := ca.serving("localhost")
	a := mustNew(t, Options{
		Address: ":8443", Cert: cert, Key: key, Reviewer: &fake{},
		RequestHeader: RequestHeader{CA: ca.file, AllowedNames: []string{"front"}, UserHeaders: []string{"X-User", "X-Name"}},
	})
	id, err := a.identify(t.Context(), request(t, "GET", "localhost", []tls.Certificate{ca.issue("front", nil, nil)},
		"X-Name: dora", "X-Remote-Extra-Example.com%2fScopes: a", "X-Remote-Extra-Example.com%2fScopes: b"))
	if err != nil || id.User != "dora" || fmt.Sprint(id.Extra) != "map[example.com/scopes:[a b]]" {
		t.Errorf("%+v, %v", id, err)
	}
	spec := decision{target: Target{Resource: "pods"}}.spec(&Viewer{User: id.User, Extra: id.Extra})
	if fmt.Sprint(spec.Extra) != "map[example.com/scopes:[a b]]" {
		t.Errorf("%+v", spec)
	}
}

// TestHandlerSeesNoCredential: a handler cannot leak what it does not get.
func TestHandlerSeesNoCredential(t *testing.T) {
	log, text := logged()
	a := mustNew(t, Options{Address: "localhost:80", Tokens: true, Reviewer: &fake{tokens: map[string]authentication.UserInfo{"s3cr3t": {Username: "bob"}}}, Log: log})
	for _, token := range []string{"s3cr3t", "s3cr3t-wrong"} {
		r := request(t, "POST", "localhost", nil, "Authorization: Bearer "+token)
		a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(fmt.Sprintf("%+v", r.Header), "s3cr3t") {
				t.Error("the handler gets the token")
			}
			From(r.Context()).Note("sink", "hook")
			w.WriteHeader(http.StatusAccepted)
		})).ServeHTTP(answerless{}, r)
		if r.Header.Get("Authorization") == "" {
			t.Error("the request itself was changed")
		}
	}
	if got := text.String(); strings.Contains(got, "s3cr3t") || !strings.Contains(got, "viewer=bob path=/path status=202") || !strings.Contains(got, "sink=hook") {
		t.Errorf("logged %s", got)
	}
}

// answerless discards an answer.
type answerless struct{}

func (answerless) Header() http.Header         { return http.Header{} }
func (answerless) Write(b []byte) (int, error) { return len(b), nil }
func (answerless) WriteHeader(int)             {}

func TestTokenCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jwt := func(claims string) string {
			return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
		}
		short := jwt(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(4*time.Second).Unix()))
		f := &fake{tokens: map[string]authentication.UserInfo{"good": {Username: "bob"}, short: {Username: "eve"}, jwt("x"): {Username: "odd"}}}
		a := mustNew(t, Options{Address: "localhost:80", Tokens: true, Reviewer: f})
		code := func(token string) int {
			return answered(a, request(t, "GET", "localhost", nil, "Authorization: Bearer "+token)).Code
		}
		expect := func(why, token string, want, reviews int) {
			t.Helper()
			if got := code(token); got != want {
				t.Errorf("%s: %d, want %d", why, got, want)
			}
			if got := f.took(); len(got) != reviews {
				t.Errorf("%s: %d reviews, want %d", why, len(got), reviews)
			}
		}
		expect("the first time", "good", 200, 1)
		expect("again", "good", 200, 0)
		f.set(func() { delete(f.tokens, "good"); f.tokens["new"] = authentication.UserInfo{Username: "bob"} })
		time.Sleep(keepToken - 1)
		expect("revoked, within the time", "good", 200, 0)
		time.Sleep(time.Nanosecond)
		expect("revoked, after it", "good", 401, 1)
		expect("a new token of the user", "new", 200, 1)
		expect("refused again", "good", 401, 0)
		f.set(func() { f.tokens["good"] = authentication.UserInfo{Username: "bob"} })
		time.Sleep(keepRefused)
		expect("valid again", "good", 200, 1)

		expect("one that expires", short, 200, 1)
		f.set(func() { delete(f.tokens, short) })
		time.Sleep(4 * time.Second)
		expect("is reviewed when it has expired", short, 401, 1)
		expect("one that only looks like a JSON web token", jwt("x"), 200, 1)
		expect("is remembered, too", jwt("x"), 200, 0)

		f.set(func() { f.err = errDown })
		expect("without an answer", "other", 503, 1)
		f.set(func() { f.err = nil })
		expect("which is not remembered", "other", 401, 1)
	})
}

// TestAudiences: a token must be for us, and the server must say so.
func TestAudiences(t *testing.T) {
	f := &fake{
		tokens:    map[string]authentication.UserInfo{"ours": {Username: "bob"}, "theirs": {Username: "bob"}, "plain": {Username: "bob"}},
		audiences: map[string][]string{"ours": {"tattler"}, "theirs": {"vault"}},
	}
	code := func(token string) int {
		a := mustNew(t, Options{Address: "localhost:80", Tokens: true, Audiences: []string{"other", "tattler"}, Reviewer: f})
		return answered(a, request(t, "GET", "localhost", nil, "Authorization: Bearer "+token)).Code
	}
	if ours, theirs, plain := code("ours"), code("theirs"), code("plain"); ours != 200 || theirs != 401 || plain != 401 {
		t.Errorf("ours %d, another audience's %d, the server's %d", ours, theirs, plain)
	}
	f.deaf = true
	if got := code("ours"); got != 401 {
		t.Errorf("a server that knows no audiences: %d", got)
	}
}

// TestHandlerSeesNoHeaderOfTheProxy: a handler can only ask the viewer who it is.
func TestHandlerSeesNoHeaderOfTheProxy(t *testing.T) {
	ca := newCA(t, "proxies")
	cert, key := ca.serving("localhost")
	a := mustNew(t, Options{Address: ":8443", Cert: cert, Key: key, Reviewer: &fake{}, RequestHeader: RequestHeader{CA: ca.file, AllowedNames: []string{"front"}}})
	r := request(t, "GET", "localhost", []tls.Certificate{ca.issue("front", nil, nil)}, "X-Remote-User: carol", "X-Remote-Group: a", "X-Remote-Extra-B: c", "Accept: x")
	a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if fmt.Sprint(r.Header) != "map[Accept:[x]]" || From(r.Context()).User != "carol" {
			t.Errorf("%v, %+v", r.Header, From(r.Context()))
		}
	})).ServeHTTP(answerless{}, r)
}
