package webhook

import (
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

// Options are the keys of a webhook sink.
type Options struct {
	// URL is the http or https address that changes are posted to. It may hold a user and a password.
	URL string `yaml:"url"`
	// Headers are added to each request, and may replace Content-Type and User-Agent.
	Headers map[string]string `yaml:"headers"`
	// Secret signs each request as https://www.standardwebhooks.com specifies, if it is set: the header
	// webhook-signature is "v1," and the base64 of the HMAC-SHA256 of ID.TIMESTAMP.BODY, of which
	// webhook-id and webhook-timestamp (Unix seconds) tell the first two. A secret that begins with
	// whsec_ is base64 behind that; another is the key as it is.
	Secret string `yaml:"secret"`
	// Template makes the body, if it is set: a text/template over the event, with the field names of package
	// event and the function json. The Content-Type is application/json then, unless Headers has
	// another; a body said to be JSON must be JSON.
	Template string `yaml:"template"`
	// Timeout bounds one request, its answer included (10 seconds).
	Timeout time.Duration `yaml:"timeout"`
	// Parallel is how many requests are on their way at a time (1, at most 64). One keeps the order of all
	// changes; more keep that of each object's.
	Parallel int `yaml:"parallel"`
	// Insecure allows credentials to be sent without TLS to another machine (false): a password, a token or a
	// secret path in the URL, headers such as Authorization, and what ${env:…} or ${file:…} stands for.
	Insecure bool     `yaml:"insecure"`
	TLS      sink.TLS `yaml:"tls"`
}

const maxParallel = 64

// reserved headers are the sink's or the protocol's.
var reserved = []string{
	"Connection", "Content-Length", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature",
}

// Validate says what is wrong with the options, naming the key, and showing no credential.
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
		return errors.New("timeout: not negative")
	case o.Parallel < 0 || o.Parallel > maxParallel:
		return fmt.Errorf("parallel: from 1 to %d", maxParallel)
	case u.Scheme != "https" && o.TLS != (sink.TLS{}):
		return errors.New("tls: the url does not begin with https://")
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if err := sink.ClearHTTP(o.Insecure, u, o.Headers); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return nil
}

// ClearText refuses to send a credential without TLS that the configuration calls by a reference.
func (o Options) ClearText(reference, value string) error {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil //nolint:nilerr // Validate has said so
	}
	err = sink.ClearReference(o.Insecure, u, reference, value, o.URL, append(slices.Collect(maps.Values(o.Headers)), o.Template)...)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Parallel == 0 {
		o.Parallel = 1
	}
	return o
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil, errors.New("a webhook needs one")
	case err != nil: // its text quotes what may be a part of a password
		return nil, errors.New("not a URL (not shown: it may hold a credential)")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("must begin with https:// or http:// and a host")
	}
	return u, nil
}

func validateHeaders(headers map[string]string) error {
	const token = "!#$%&'*+-.^_`|~" // RFC 9110, 5.6.2, besides letters and digits
	seen := map[string]bool{}
	for name, value := range headers {
		canonical := http.CanonicalHeaderKey(name)
		if seen[canonical] {
			return fmt.Errorf("%s is there twice", canonical)
		}
		seen[canonical] = true
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(token, r))
		}) {
			return fmt.Errorf("%q is no name of a header", name)
		}
		if slices.Contains(reserved, canonical) {
			return fmt.Errorf("%s cannot be set", name)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("the value of %s holds a control character, such as a line end after a secret from a file", name)
		}
	}
	return nil
}

// key is the bytes of a secret; nil for none.
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
		return nil, errors.New("behind whsec_ there must be base64")
	}
	return k, nil
}
