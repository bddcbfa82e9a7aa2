// Package auth decides who may use the daemon's web page and JSON API, and what each viewer may see.
//
// Without credentials configured, it is open: it serves loopback alone, and everyone on the machine sees
// everything. Otherwise each request is authenticated by Kubernetes means (see Auth.Wrap), and each resource and
// namespace is checked by a SubjectAccessReview (see Viewer.May). Nothing is served that is not checked: if a
// review fails, the answer is an error.
//
//   - A revoked token stops working within 20 seconds (10 here, 10 in the API server), a right that was taken away
//     within 10. A right that was granted works within 5.
//   - `get` on a resource decides. Roles that are limited to resourceNames do not count, because a review of them
//     would need every name. The redacted form of Secrets needs `get` on secrets, too.
//   - Client certificates cannot be revoked one by one; Kubernetes cannot either. They end when they expire, or when
//     their CA is removed from the file.
package auth

import (
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/internal/web/share"
)

// Options configure New. The zero value is an open page on loopback. Files are read again when they change.
type Options struct {
	// Address is the configured HOST:PORT. It must be a loopback address unless TLS is set, and one of Tokens,
	// ClientCA and RequestHeader.CA.
	Address string
	// Hosts are names of the page besides those of its certificate: a request's Host header must have one of them.
	// With a loopback address, loopback names and addresses count as well.
	Hosts []string
	// Cert and Key are PEM files of the serving certificate and its key. Without them, the page speaks plain HTTP.
	Cert, Key string
	// Tokens accepts bearer tokens, which a TokenReview verifies.
	Tokens bool
	// Audiences are those that a token must be for, at least one of them. Without any, it must be for the API
	// server.
	Audiences []string
	// ClientCA is a PEM file of CAs whose client certificates name a user (CN) and its groups (O).
	ClientCA string
	// RequestHeader trusts an authenticating proxy.
	RequestHeader RequestHeader
	// Reviewer makes the reviews. It is required if there is any kind of credential.
	Reviewer Reviewer
	// Clusters are the reviewers of other clusters, by Target.Cluster, in which a user of the same name is the same
	// person. Targets of any other cluster are denied.
	Clusters map[string]Reviewer
	// Log receives refused reviews, reloaded files, and a line for each POST. It gets no credential. nil discards it.
	Log *slog.Logger
}

// RequestHeader describes an authenticating proxy, as the flags --requestheader-* of kube-apiserver do. Its
// headers count only in requests with a client certificate of the proxy.
type RequestHeader struct {
	// CA is a PEM file of CAs that sign the proxy's client certificate.
	CA string
	// AllowedNames are the common names that this certificate may have. At least one is required, because a CA may
	// sign other certificates as well.
	AllowedNames []string
	// UserHeaders, UIDHeaders and GroupHeaders are the headers with the user's name, UID and groups. The defaults
	// are X-Remote-User, X-Remote-Uid and X-Remote-Group.
	UserHeaders, UIDHeaders, GroupHeaders []string
	// ExtraPrefixes begin the names of headers with further attributes. The default is X-Remote-Extra-.
	ExtraPrefixes []string
}

// Limits of what clients can use.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10 // a filter is in the URL
	maxBody       = 1 << 20
	// maxRequests is how many requests are answered at once; streams count.
	maxRequests = 512
	// maxPerViewer is the share of one viewer: several pages, each with a stream.
	maxPerViewer = 32
	// maxStreams is how many of them may be streams, so that a viewer with many live pages can still open others.
	maxStreams = 16
	// grace is how long requests may take to end when the server does.
	grace = 2 * time.Second
)

// Auth authenticates requests. It is safe for concurrent use. It starts no goroutines.
type Auth struct {
	o        Options
	open     bool // no credentials: loopback only
	loopback bool // the address
	log      *slog.Logger

	pair     *reloaded[*pair]   // nil without TLS
	clientCA *reloaded[*bundle] // nil: no client certificates
	proxyCA  *reloaded[*bundle] // nil: no proxy

	csrf     *http.CrossOriginProtection
	tokens   *tokens
	rights   *rights
	requests chan struct{} // has an element for each request
	viewers  slots
	streams  slots
	refusals Refusals
	timeouts timeouts
	// connections is maxConnections, except in tests.
	connections int
}

// timeouts are constants, except in tests.
type timeouts struct{ header, read, write, grace time.Duration }

// Check returns an error if New would fail, except for a missing Reviewer. It reads the files.
func (o Options) Check() error {
	o.Reviewer = struct{ Reviewer }{} // New does not call it
	_, err := New(o)
	return err
}

// Validate is Check that reads no files.
func (o Options) Validate() error {
	o.Reviewer = struct{ Reviewer }{}
	_, err := prepare(o)
	return err
}

// prepare checks the options.
func prepare(o Options) (*Auth, error) {
	a := &Auth{
		o: o, log: o.Log,
		open:     !o.Tokens && o.ClientCA == "" && o.RequestHeader.CA == "",
		loopback: loopbackAddress(o.Address),
		csrf:     http.NewCrossOriginProtection(),
		requests: make(chan struct{}, maxRequests),
		viewers:  slots{limit: maxPerViewer},
		streams:  slots{limit: maxStreams},
		timeouts: timeouts{headerTimeout, readTimeout, writeTimeout, grace},

		connections: maxConnections,
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.refusals.log = a.log
	a.o.RequestHeader.defaults()
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("protect the web page: %w", err)
	}
	return a, nil
}

// New checks the options and reads the files.
func New(o Options) (*Auth, error) {
	a, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := a.load(); err != nil {
		return nil, fmt.Errorf("protect the web page: %w", err)
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	a.tokens = &tokens{reviewer: o.Reviewer, audiences: o.Audiences, secret: secret, log: a.log,
		asking: make(chan struct{}, maxTokenReviews)}
	a.tokens.accepted.limit, a.tokens.refused.limit = maxTokens, maxTokens
	a.rights = &rights{reviewer: o.Reviewer, log: a.log, asking: share.New(maxAccessReviews, maxShare), others: map[string]*other{}}
	for name, r := range o.Clusters {
		a.rights.others[name] = &other{Reviewer: r}
	}
	a.rights.decided.limit, a.rights.created.limit = maxDecisions, maxDecisions
	return a, nil
}

// Refusals counts what is refused, also by the handlers that Auth protects.
func (a *Auth) Refusals() *Refusals { return &a.refusals }

func (r *RequestHeader) defaults() {
	for _, d := range []struct {
		list *[]string
		def  string
	}{
		{&r.UserHeaders, "X-Remote-User"}, {&r.UIDHeaders, "X-Remote-Uid"},
		{&r.GroupHeaders, "X-Remote-Group"}, {&r.ExtraPrefixes, "X-Remote-Extra-"},
	} {
		if len(*d.list) == 0 {
			*d.list = []string{d.def}
		}
	}
}

func (a *Auth) validate() error {
	o := a.o
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return errors.New("the certificate and its key belong together: set both, or neither")
	case !a.loopback && (o.Cert == "" || a.open):
		return fmt.Errorf("%s is not a loopback address: other machines need TLS (web.tls) and authentication (web.tokens, web.clientCA or web.requestHeader); or choose 127.0.0.1 and use kubectl port-forward", o.Address)
	case o.Cert == "" && (o.ClientCA != "" || o.RequestHeader.CA != ""):
		return errors.New("client certificates need TLS: set web.tls")
	case o.RequestHeader.CA != "" && len(o.RequestHeader.AllowedNames) == 0:
		return errors.New("name the proxy's certificate in web.requestHeader.allowedNames: its CA may sign others as well")
	case a.open && len(o.Hosts) > 0:
		return errors.New("without authentication, only loopback names are served: leave out web.hosts, or add web.tokens")
	case !a.open && o.Reviewer == nil:
		return errors.New("without a Reviewer, no one can be authorized")
	}
	return nil
}

func (a *Auth) load() (err error) {
	if a.o.Cert != "" {
		if a.pair, err = reload(a.log, parsePair, a.o.Cert, a.o.Key); err != nil {
			return err
		}
	}
	if a.o.ClientCA != "" {
		if a.clientCA, err = reload(a.log, parseBundle, a.o.ClientCA); err != nil {
			return err
		}
	}
	if a.o.RequestHeader.CA != "" {
		a.proxyCA, err = reload(a.log, parseBundle, a.o.RequestHeader.CA)
	}
	return err
}

// loopbackAddress reports whether HOST:PORT is for this machine alone. Of names, only localhost counts.
func loopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return host == "" && address == "" || loopbackHost(host)
}

func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// slots count what each viewer uses.
type slots struct {
	limit int
	mu    sync.Mutex
	used  map[string]int
}

// enter takes a slot of the viewer; false means that all are taken.
func (s *slots) enter(viewer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[viewer] >= s.limit {
		return false
	}
	if s.used == nil {
		s.used = map[string]int{}
	}
	s.used[viewer]++
	return true
}

func (s *slots) leave(viewer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[viewer]--; s.used[viewer] == 0 {
		delete(s.used, viewer)
	}
}

// verify verifies a client's certificate chain. Intermediates may come with it.
func (b *bundle) verify(chain []*x509.Certificate) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: b.pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}
