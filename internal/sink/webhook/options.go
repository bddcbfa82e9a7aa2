package webhook

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a webhook sink.
type Options struct {
	// URL is the http or https address that changes are posted to. It may contain a user and a password.
	URL string `yaml:"url"`
	// Headers are added to each request. They may replace Content-Type and User-Agent.
	Headers map[string]string `yaml:"headers"`
	// Secret signs each request, as https://www.standardwebhooks.com specifies: the header webhook-signature is "v1,"
	// and the base64 of the HMAC-SHA256 of ID.TIMESTAMP.BODY; the headers webhook-id and webhook-timestamp (Unix
	// seconds) contain ID and TIMESTAMP. A secret that begins with whsec_ has the key in base64 after that
	// prefix; any other secret is the key itself.
	Secret string `yaml:"secret"`
	// Template is a text/template over the event that makes the body. The template has the field names of package
	// event, and the function json. The Content-Type is then application/json unless headers sets another; a body that
	// is declared as JSON must be JSON.
	Template string `yaml:"template"`
	// Timeout bounds one request, including its answer. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Parallel is the number of concurrent requests, at most 64. With 1, all changes stay in order; with more, only the
	// changes of one object stay in order. Default: 1.
	Parallel int `yaml:"parallel"`
	// Insecure allows credentials to be sent without TLS to another machine: a password, a token or a secret path
	// in the URL, headers such as Authorization, and the values of ${env:…} and ${file:…}.
	Insecure bool     `yaml:"insecure"`
	TLS      sink.TLS `yaml:"tls"`
}

const maxParallel = 64

// reserved lists the headers that the sink or the protocol sets.
var reserved = []string{
	"Connection", "Content-Length", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature",
}

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	u, err := parseURL(o.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if err := validateHeaders(o.Headers); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	if _, err := key(o.Secret); err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	if _, err := parseTemplate(o.Template); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	switch {
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	case o.Parallel < 0 || o.Parallel > maxParallel:
		return fmt.Errorf("parallel: must be between 1 and %d", maxParallel)
	}
	if err := scheme.Check(sink.Address{URL: u, Secure: u.Scheme == "https"}, o.TLS, o.Insecure); err != nil {
		return err
	}
	if err := sink.ClearHTTP(o.Insecure, u, o.Headers); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return nil
}

// ClearText returns an error if a credential that the configuration reads from elsewhere would be sent without TLS.
func (o Options) ClearText(reference, value string) error {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil //nolint:nilerr // Validate returns it
	}
	err = sink.ClearReference(o.Insecure, u, reference, value, o.URL, append(slices.Collect(maps.Values(o.Headers)), o.Template)...)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Parallel = cmp.Or(o.Parallel, 1)
	return o
}

var scheme = sink.Scheme{Plain: "http", Secure: "https"}

func parseURL(s string) (*url.URL, error) {
	a, err := scheme.Parse(s)
	return a.URL, err
}

func validateHeaders(headers map[string]string) error {
	const token = "!#$%&'*+-.^_`|~" // RFC 9110, 5.6.2, in addition to letters and digits
	seen := map[string]bool{}
	for name, value := range headers {
		canonical := http.CanonicalHeaderKey(name)
		if seen[canonical] {
			return fmt.Errorf("%s is set twice", canonical)
		}
		seen[canonical] = true
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(token, r))
		}) {
			return fmt.Errorf("%q is not a header name", name)
		}
		if slices.Contains(reserved, canonical) {
			return fmt.Errorf("%s cannot be set", name)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("the value of %s contains a control character, such as a newline after a secret from a file", name)
		}
	}
	return nil
}

// key returns the bytes of a secret, or nil if there is no secret.
func key(secret string) ([]byte, error) {
	coded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		if secret == "" {
			return nil, nil
		}
		return []byte(secret), nil
	}
	k, err := base64.StdEncoding.DecodeString(coded)
	if err != nil || len(k) == 0 {
		return nil, errors.New("not base64 after whsec_")
	}
	return k, nil
}
