package otlp

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// schemes maps the scheme of an address to the endpoint's scheme and protocol.
var schemes = map[string]struct {
	scheme   string
	protocol Protocol
}{
	"otlp": {"http", GRPC}, "otlps": {"https", GRPC}, "otlp+http": {"http", HTTP}, "otlp+https": {"https", HTTP},
}

// settings are the query keys of an address.
var settings = map[string]func(o *Options, value string) error{
	"body":        func(o *Options, v string) error { o.Body = Body(v); return nil },
	"compression": func(o *Options, v string) error { o.Compression = Compression(v); return nil },
	"ca":          func(o *Options, v string) error { o.TLS.CA = v; return nil },
	"cert":        func(o *Options, v string) error { o.TLS.Cert = v; return nil },
	"key":         func(o *Options, v string) error { o.TLS.Key = v; return nil },
	"insecure": func(o *Options, v string) (err error) {
		o.Insecure, err = strconv.ParseBool(v)
		return err
	},
	"timeout": func(o *Options, v string) (err error) {
		o.Timeout, err = time.ParseDuration(v)
		return err
	},
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
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("invalid query")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		set := settings[name]
		if set == nil {
			return nil, fmt.Errorf("unknown key in the query: known are %s (write a ? in a password as %%3F)", strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if err := set(o, query.Get(name)); err != nil {
			return nil, fmt.Errorf("option %s: %w", name, err)
		}
	}
	if form.scheme == "https" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	u.Scheme, u.RawQuery = form.scheme, ""
	o.Endpoint = u.String()
	return o, nil
}
