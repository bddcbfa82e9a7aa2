package mqtt

import (
	"errors"
	"net/url"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// FromURL returns the options of an address for --to:
//
//	mqtts://user:password@host:8883/TOPIC/LEVELS?retain=true&clientId=NAME
//
// The topic may be a template, and is optional. The query may also contain ca (a file), expiry, keepAlive, timeout,
// and insecure, which allows the password without TLS, and with TLS trusts any certificate.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not a URL (not shown: it may contain a credential)")
	}
	if u.Fragment != "" || strings.Contains(address, "#") {
		return nil, errors.New("a topic to publish to contains no #; write a # in a password as %23")
	}
	o := &Options{URL: (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), Topic: strings.TrimPrefix(u.Path, "/")}
	o.User = u.User.Username()
	o.Password, _ = u.User.Password()
	err = sink.Query{
		"ca": sink.Text(&o.TLS.CA), "clientId": sink.Text(&o.ClientID), "retain": sink.Bool(&o.Retain), "insecure": sink.Bool(&o.Insecure),
		"expiry": sink.Duration(&o.Expiry), "keepAlive": sink.Duration(&o.KeepAlive), "timeout": sink.Duration(&o.Timeout),
	}.Decode(u.RawQuery, sink.PasswordHint)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "mqtts" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	return o, nil
}
