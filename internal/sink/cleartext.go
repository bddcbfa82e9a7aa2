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

// Loopback reports whether a host is this machine: localhost or a literal loopback address. It resolves no names.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// ClearText returns an error if a credential, such as "the password", would be sent without TLS to a host other than
// this machine, unless insecure allows it. The error suggests how to use TLS instead.
func ClearText(insecure bool, credential, instead string, hosts ...string) error {
	for _, host := range hosts {
		if !insecure && !Loopback(host) {
			return fmt.Errorf("%s would be sent to %s in clear text: use %s, or allow it with insecure: true", credential, host, instead)
		}
	}
	return nil
}

// ClearHTTP is ClearText for requests to a URL with headers. It rejects a password, a header or query key that is
// named like a credential, and a path that looks like one, unless the URL is https.
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
			credential = "the query key " + name
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

// ClearReference is ClearText for a credential that the configuration reads from elsewhere, such as ${env:HOOK}. It
// rejects one in the address, unless it covers only the scheme and host, or in one of the other texts to be sent.
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

// secretPath matches the paths of webhooks that Slack, Discord, Teams and Telegram hand out. A proxy or a private
// installation has the same paths.
var secretPath = regexp.MustCompile(`(?i)/services/T[^/]*/B[^/]*/[^/]|/api/webhooks/[0-9]+/[^/]|/webhookb2/[^/]|/bot[0-9]+:[^/]`)

// words matches the words of a path. The hyphens of a UUID belong to it.
var words = regexp.MustCompile(`[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Za-z]+`)

// random reports whether a word looks like a token: letters and digits mixed, 16 or more, or a UUID.
func random(word string) bool {
	const minToken = 16
	return len(word) >= minToken && strings.ContainsAny(word, "0123456789") && strings.ContainsFunc(word, unicode.IsLetter)
}

// credentialName matches names of headers and query keys that hold a credential.
var credentialName = regexp.MustCompile(`(?i)(^|[-_])auth([-_]|$)|authoriz|authentic|token|secret|passw|cookie|credential|(api|access)[-_]?key|signature|^(sig|key|code)$`)
