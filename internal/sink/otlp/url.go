package otlp

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// schemes maps the scheme of an address to the endpoint's scheme and protocol.
var schemes = map[string]struct {
	scheme   string
	protocol Protocol
}{
	"otlp": {"http", GRPC}, "otlps": {"https", GRPC}, "otlp+http": {"http", HTTP}, "otlp+https": {"https", HTTP},
}

// FromURL returns the options of an address for --to: otlp://HOST:4317 is gRPC, otlp+http://HOST:4318 HTTP; otlps and
// otlp+https use TLS. Its insecure=true allows credentials without TLS, and with TLS trusts any certificate. No error
// shows a credential.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil { // its text may quote part of a password
		return nil, errors.New("not a URL")
	}
	form, ok := schemes[strings.ToLower(u.Scheme)]
	if !ok || u.Host == "" {
		return nil, fmt.Errorf("want %s, and ://HOST:PORT", strings.Join(slices.Sorted(maps.Keys(schemes)), ", "))
	}
	o := &Options{Protocol: form.protocol}
	err = sink.Query{
		"body": sink.Text(&o.Body), "compression": sink.Text(&o.Compression), "timeout": sink.Duration(&o.Timeout),
		"insecure": sink.Bool(&o.Insecure), "ca": sink.Text(&o.TLS.CA), "cert": sink.Text(&o.TLS.Cert), "key": sink.Text(&o.TLS.Key),
	}.Decode(u.RawQuery, sink.PasswordHint)
	if err != nil {
		return nil, err
	}
	if form.scheme == "https" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	u.Scheme, u.RawQuery = form.scheme, ""
	o.Endpoint = u.String()
	return o, nil
}
