package auth

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Names of Kubernetes. Source: k8s.io/apiserver/pkg/authentication/user.
const (
	anonymous     = "system:anonymous"
	authenticated = "system:authenticated"
)

// identity is who a request comes from.
type identity struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string `json:",omitempty"`
	how       string              // the kind of credential
}

func (id *identity) extra(key string, values ...string) {
	if id.Extra == nil {
		id.Extra = map[string][]string{}
	}
	id.Extra[key] = append(id.Extra[key], values...)
}

// complete refuses the anonymous user, and adds the group of all others, as the API server does.
func (id *identity) complete() error {
	if id.User == "" || id.User == anonymous {
		return refuse("the credential names no user")
	}
	id.Groups = slices.DeleteFunc(slices.Clone(id.Groups), func(g string) bool { return g == "" || g == authenticated })
	id.Groups = append(id.Groups, authenticated)
	return nil
}

// key identifies all that a review depends on.
func (id *identity) key() string {
	sorted := *id
	sorted.Groups = slices.Sorted(slices.Values(id.Groups))
	text, _ := json.Marshal(sorted) // strings alone: it never fails; maps are sorted
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// refusal is a request that is not authenticated. Its text is for the client, and names no credential.
type refusal struct{ text string }

func (r *refusal) Error() string  { return r.text }
func refuse(text string) *refusal { return &refusal{text} }
func (a *Auth) peers(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// identify verifies every credential of a request. All of them must be valid; the first of these names the viewer:
//
//  1. the headers of an authenticating proxy, which its client certificate proves,
//  2. the client certificate, unless it is a proxy's,
//  3. the bearer token.
//
// A *refusal means that the request is not authenticated; other errors, that this could not be decided.
func (a *Auth) identify(ctx context.Context, r *http.Request) (*identity, error) {
	id, err := a.certified(r)
	if err != nil {
		return nil, err
	}
	token, present, err := bearer(r.Header)
	switch {
	case err != nil:
		return nil, err
	case present && !a.o.Tokens:
		return nil, refuse("bearer tokens are not accepted here")
	case present:
		owner, err := a.tokens.review(ctx, token)
		if err != nil {
			return nil, err
		}
		if owner == nil {
			return nil, refuse("the bearer token is not valid here: it may have expired, or be for another audience")
		}
		if id == nil {
			copied := *owner
			id = &copied
		}
	}
	if id == nil {
		return nil, refuse("authentication is required: " + a.accepted())
	}
	return id, id.complete()
}

// accepted lists the accepted credentials.
func (a *Auth) accepted() string {
	var kinds []string
	if a.o.Tokens {
		kinds = append(kinds, "a bearer token")
	}
	if a.clientCA != nil {
		kinds = append(kinds, "a client certificate")
	}
	if a.proxyCA != nil {
		kinds = append(kinds, "the authenticating proxy")
	}
	return "use " + strings.Join(kinds, " or ")
}

// certified returns the identity that the client certificate proves, which may be in headers; nil without any.
func (a *Auth) certified(r *http.Request) (*identity, error) {
	chain, claimed := a.peers(r), a.proxyCA != nil && a.claims(r.Header)
	if len(chain) == 0 {
		if claimed {
			return nil, refuse("headers that name a user are accepted from the authenticating proxy alone, with its client certificate")
		}
		return nil, nil
	}
	if a.isProxy(chain) {
		if claimed {
			return a.fromHeaders(r.Header)
		}
		return nil, nil // a proxy is no viewer
	}
	switch {
	case claimed:
		return nil, refuse("headers that name a user are accepted from the authenticating proxy alone; this client certificate is another's")
	case a.clientCA == nil:
		return nil, refuse("client certificates are accepted from the authenticating proxy alone")
	}
	if err := a.clientCA.get().verify(chain); err != nil {
		return nil, refuse("the client certificate is not valid here: it may have expired, or be of another CA")
	}
	subject := chain[0].Subject
	return &identity{User: subject.CommonName, Groups: subject.Organization, how: "certificate"}, nil
}

func (a *Auth) isProxy(chain []*x509.Certificate) bool {
	return a.proxyCA != nil && slices.Contains(a.o.RequestHeader.AllowedNames, chain[0].Subject.CommonName) &&
		a.proxyCA.get().verify(chain) == nil
}

// identityHeader reports whether a header, in canonical form, is one of the proxy's.
func (r *RequestHeader) identityHeader(name string) bool {
	is := func(h string) bool { return strings.EqualFold(h, name) }
	return slices.ContainsFunc(r.UserHeaders, is) || slices.ContainsFunc(r.UIDHeaders, is) || slices.ContainsFunc(r.GroupHeaders, is) ||
		slices.ContainsFunc(r.ExtraPrefixes, func(p string) bool { return hasPrefixFold(name, p) })
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// claims reports whether a request has any of the proxy's headers.
func (a *Auth) claims(h http.Header) bool {
	for name := range h {
		if a.o.RequestHeader.identityHeader(name) {
			return true
		}
	}
	return false
}

// fromHeaders reads a proxy's headers. Two values for the user or UID are refused: a proxy that adds its header
// instead of replacing the client's would let clients choose.
func (a *Auth) fromHeaders(h http.Header) (*identity, error) {
	conf, id := &a.o.RequestHeader, &identity{how: "proxy"}
	var err error
	if id.User, err = single(h, conf.UserHeaders); err != nil {
		return nil, err
	}
	if id.User == "" {
		return nil, refuse("the proxy names no user")
	}
	if id.UID, err = single(h, conf.UIDHeaders); err != nil {
		return nil, err
	}
	for _, name := range conf.GroupHeaders {
		id.Groups = append(id.Groups, h.Values(name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, prefix := range conf.ExtraPrefixes {
			if hasPrefixFold(name, prefix) {
				key := strings.ToLower(name[len(prefix):])
				if plain, err := url.PathUnescape(key); err == nil {
					key = plain
				}
				id.extra(key, h[name]...)
				break
			}
		}
	}
	return id, nil
}

// single returns the value of the first of these headers that is present.
func single(h http.Header, names []string) (string, error) {
	for _, name := range names {
		switch values := h.Values(name); {
		case len(values) > 1:
			return "", refuse("the header " + name + " occurs more than once: the proxy must replace what clients send")
		case len(values) == 1 && values[0] != "":
			return values[0], nil
		}
	}
	return "", nil
}
