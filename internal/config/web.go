package config

import (
	"fmt"
	"net"
	"regexp"
	"strings"
)

// Web configures the web page and its JSON API, which show the journal. On a loopback address, the page and the API may
// be open to everyone on the machine. Other addresses need TLS and authentication: docs/security.md describes who may
// see what.
type Web struct {
	// Address is HOST:PORT, or :PORT for every interface. Without this key, there is no web page.
	Address string `yaml:"address"`
	// Hosts are names by which browsers reach the page and which are not in its certificate, such as the name of a
	// proxy. Requests for any other name are refused.
	Hosts []string `yaml:"hosts"`
	TLS   WebTLS   `yaml:"tls"`
	// Tokens accepts bearer tokens of the cluster, such as those of service accounts. The API server verifies them.
	Tokens bool `yaml:"tokens"`
	// Audiences are the accepted audiences: a token must be for at least one of them. Without this key, a token must be
	// for the API server, and whoever receives such a token could use it there.
	Audiences []string `yaml:"audiences"`
	// ClientCA is a PEM file of CAs. Their client certificates name a user (CN) and its groups (O), as for the API server.
	ClientCA      string        `yaml:"clientCA"`
	RequestHeader RequestHeader `yaml:"requestHeader"`

	// ReviewsOnly says that another cluster authenticates the viewers.
	ReviewsOnly bool `yaml:"-"`
}

// WebTLS is the certificate of the web page.
type WebTLS struct {
	// Cert and Key are PEM files of the certificate and its key. They are read again when they change.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// RequestHeader trusts an authenticating proxy in front of the web page, as the flags --requestheader-* of
// kube-apiserver do.
type RequestHeader struct {
	// ClientCA is a PEM file of CAs that sign the client certificate of the proxy.
	ClientCA string `yaml:"clientCA"`
	// AllowedNames are the common names that the proxy's certificate may have; at least one.
	AllowedNames []string `yaml:"allowedNames"`
	// UsernameHeaders are the headers with the user's name. Default: X-Remote-User.
	UsernameHeaders []string `yaml:"usernameHeaders"`
	// UIDHeaders are the headers with the user's UID. Default: X-Remote-Uid.
	UIDHeaders []string `yaml:"uidHeaders"`
	// GroupHeaders are the headers with the user's groups; each header has one group. Default: X-Remote-Group.
	GroupHeaders []string `yaml:"groupHeaders"`
	// ExtraHeaderPrefixes are the prefixes of headers with further attributes of the user. Default: X-Remote-Extra-.
	ExtraHeaderPrefixes []string `yaml:"extraHeaderPrefixes"`
}

// Authenticates reports whether viewers are authenticated, so that their rights are reviewed.
func (w Web) Authenticates() bool {
	return w.Tokens || w.ClientCA != "" || w.RequestHeader.ClientCA != ""
}

const authenticate = "web.tokens, web.clientCA or web.requestHeader"

func (w Web) validate(d *decoder) {
	for key, file := range map[string]string{
		"web.tls.cert": w.TLS.Cert, "web.tls.key": w.TLS.Key, "web.clientCA": w.ClientCA, "web.requestHeader.clientCA": w.RequestHeader.ClientCA,
	} {
		if strings.HasPrefix(file, "~") {
			d.failAt(key, "~ is not expanded here: write the full path")
		}
	}
	d.each("web.hosts", w.Hosts, checkHost)
	w.RequestHeader.validate(d)
	if len(w.Audiences) > 0 && !w.Tokens {
		d.failAt("web.audiences", "they are audiences of bearer tokens, which are not accepted: set web.tokens: true")
	}
	if (w.TLS.Cert == "") != (w.TLS.Key == "") {
		d.failAt("web.tls", "cert and key belong together: set both")
	}
	if w.Address == "" {
		if d.places["web"] != nil && d.places["web.address"] == nil {
			d.failAt("web", "without web.address there is no web page; 127.0.0.1:8081 is for this machine alone")
		}
		return
	}
	host, port, err := net.SplitHostPort(w.Address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		d.failAt("web.address", "%q: want HOST:PORT, such as 127.0.0.1:8081, or :PORT", w.Address)
		return
	}
	w.exposure(d, loopback(host))
}

// exposure checks that what is configured suffices for who can reach the page.
func (w Web) exposure(d *decoder, local bool) {
	switch {
	case !local && w.TLS.Cert == "" && !w.Authenticates():
		d.failAt("web.address", "other machines can reach %s: set web.tls and one of %s; or choose 127.0.0.1 and use kubectl port-forward", w.Address, authenticate)
	case !local && w.TLS.Cert == "":
		d.failAt("web.address", "other machines can reach %s: set web.tls, so that credentials are not sent in clear text", w.Address)
	case !local && !w.Authenticates():
		d.failAt("web.address", "other machines can reach %s: set one of %s", w.Address, authenticate)
	case w.TLS.Cert == "" && (w.ClientCA != "" || w.RequestHeader.ClientCA != ""):
		d.failAt("web.tls", "missing: client certificates need TLS")
	case !w.Authenticates() && len(w.Hosts) > 0:
		d.failAt("web.hosts", "without authentication, only loopback names are served: omit the key, or set one of %s", authenticate)
	}
}

func (r RequestHeader) validate(d *decoder) {
	const at = "web.requestHeader"
	headers := map[string][]string{
		"usernameHeaders": r.UsernameHeaders, "uidHeaders": r.UIDHeaders, "groupHeaders": r.GroupHeaders, "extraHeaderPrefixes": r.ExtraHeaderPrefixes,
	}
	for key, list := range headers {
		d.each(at+"."+key, list, checkHeader)
	}
	switch {
	case r.ClientCA != "" && len(r.AllowedNames) == 0:
		d.failAt(at+".allowedNames", "missing: name the proxy's certificate, because its CA may sign others as well")
	case r.ClientCA == "" && d.places[at] != nil && d.places[at+".clientCA"] == nil:
		d.failAt(at+".clientCA", "missing: without the proxy's certificate, anyone could send its headers")
	}
	for i, name := range r.AllowedNames {
		if name == "" {
			d.failAt(fmt.Sprintf("%s.allowedNames[%d]", at, i), "an empty name")
		}
	}
}

var (
	headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	hostForm   = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.?)+$`)
)

func checkHeader(name string) error {
	switch {
	case !headerForm.MatchString(name):
		return fmt.Errorf("%q is not the name of a header: want a name such as X-Remote-User", name)
	case strings.EqualFold(name, "Authorization"), strings.EqualFold(name, "Host"), strings.EqualFold(name, "Cookie"):
		return fmt.Errorf("%s cannot hold a name: every client sends it", name)
	}
	return nil
}

func checkHost(name string) error {
	if !hostForm.MatchString(name) && net.ParseIP(name) == nil {
		return fmt.Errorf("%q is not a host name: want a name such as tattler.example.com, without a port", name)
	}
	return nil
}
