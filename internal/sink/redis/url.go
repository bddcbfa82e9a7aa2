package redis

import (
	"errors"
	"net/url"

	"github.com/tattler-dev/tattler/internal/sink"
)

// FromURL returns the options of an address for --to: redis://USER:PASSWORD@HOST:PORT/DB?stream=NAME, or rediss://
// with TLS. Its insecure=true allows the password without TLS, and with TLS trusts any certificate. No error shows a
// credential.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil { // its text may quote part of a password
		return nil, errors.New("not a URL")
	}
	o := &Options{}
	err = sink.Query{
		"stream": sink.Text(&o.Stream), "maxLen": sink.Number(&o.MaxLen), "timeout": sink.Duration(&o.Timeout),
		"insecure": sink.Bool(&o.Insecure), "ca": sink.Text(&o.TLS.CA), "cert": sink.Text(&o.TLS.Cert), "key": sink.Text(&o.TLS.Key),
	}.Decode(u.RawQuery, sink.PasswordHint)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "rediss" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	u.RawQuery = ""
	o.URL = u.String()
	return o, nil
}
