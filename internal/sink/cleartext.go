package sink

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
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

// ClearHTTP is ClearText for requests to a URL with headers. No header and no part of the query that is named like a
// credential goes without TLS, nor a path that looks like one.
func ClearHTTP(insecure bool, u *url.URL, headers map[string]string) error {
	if u.Scheme == "https" {
		return nil
	}
	credential := ""
	if password, _ := u.User.Password(); password != "" {
		credential = "the password"
	}
	if secretPath.MatchString(u.Path) || slices.ContainsFunc(words.FindAllString(u.Path, -1), random) {
		credential = "the path, which looks like a credential,"
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

// ClearReference refuses to send a credential that the configuration reads from elsewhere, such as ${env:HOOK}, in a
// request without TLS: in the address, unless it is only the beginning and the host, or in one of the other texts.
func ClearReference(insecure bool, u *url.URL, reference, value string, address string, sent ...string) error {
	if u.Scheme == "https" {
		return nil
	}
	inAddress := strings.Contains(address, value) && !strings.Contains(u.Scheme+"://"+u.Host, strings.TrimRight(value, "/"))
	if !inAddress && !slices.ContainsFunc(sent, func(text string) bool { return strings.Contains(text, value) }) {
		return nil
	}
	return ClearText(insecure, reference, "https://", u.Hostname())
}

// secretPath are the paths of webhooks that chat services hand out, as a proxy or an installation of one's own has
// them, too: Slack's, Discord's, Teams' and Telegram's.
var secretPath = regexp.MustCompile(`(?i)/services/T[^/]*/B[^/]*/[^/]|/api/webhooks/[0-9]+/[^/]|/webhookb2/[^/]|/bot[0-9]+:[^/]`)

// words are what a path is made of; hyphens belong to a UUID.
var words = regexp.MustCompile(`[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Za-z]+`)

// random reports whether a word looks like a token: a UUID, or letters among digits, longer than names are.
func random(word string) bool {
	const least = 16
	return len(word) >= least && strings.ContainsAny(word, "0123456789") && strings.ContainsFunc(word, unicode.IsLetter)
}

// credentialName is how headers and keys of a query are called that hold a credential.
var credentialName = regexp.MustCompile(`(?i)(^|[-_])auth([-_]|$)|authoriz|authentic|token|secret|passw|cookie|credential|(api|access)[-_]?key|signature|^(sig|key|code)$`)
