package sink

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// Loopback reports whether a host is this machine: localhost or a loopback address as it is written. It resolves
// no name.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// ClearText refuses to send a credential, such as "the password", without TLS to a host that is not this
// machine, unless insecure allows it. The error says how to use TLS instead.
func ClearText(insecure bool, credential, instead string, hosts ...string) error {
	for _, host := range hosts {
		if !insecure && !Loopback(host) {
			return fmt.Errorf("%s would be sent to %s in clear text: use %s, or allow it with insecure: true", credential, host, instead)
		}
	}
	return nil
}

// ClearHTTP is ClearText for requests to a URL with headers. No header and no part of the URL that looks like a
// credential by its name goes without TLS.
func ClearHTTP(insecure bool, u *url.URL, headers map[string]string) error {
	if u.Scheme == "https" {
		return nil
	}
	credential := ""
	if password, _ := u.User.Password(); password != "" {
		credential = "the password"
	}
	for name, values := range u.Query() {
		if credentialName.MatchString(name) && strings.Join(values, "") != "" {
			credential = "what the query has as " + name
		}
	}
	for name, value := range headers {
		if credentialName.MatchString(name) && value != "" {
			credential = "the header " + http.CanonicalHeaderKey(name)
		}
	}
	if credential == "" {
		return nil
	}
	return ClearText(insecure, credential, "https://", u.Hostname())
}

// credentialName is how headers and keys of a query are called that hold a credential.
var credentialName = regexp.MustCompile(`(?i)(^|[-_])auth([-_]|$)|authoriz|authentic|token|secret|passw|cookie|credential|(api|access)[-_]?key|signature|^(sig|key|code)$`)
