package nats

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// FromURL returns the options of an address for --to:
//
//	nats://user:password@host:4222,host:4222/SUBJECT?stream=NAME&create=true
//
// A user without a password is a token. The subject may be a template, and is optional. The query may also contain
// credentials and nkey (files), ca (a file), timeout, and insecure, which allows the password without TLS, and with
// TLS trusts any certificate.
func FromURL(address string) (*Options, error) {
	hidden := errors.New("not a URL (not shown: it may contain a credential)")
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return nil, errors.New("must begin with nats://, tls://, ws:// or wss:// and a host")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	subject, err := url.PathUnescape(path)
	if err != nil {
		return nil, hidden
	}
	if strings.ContainsRune(path, '@') { // the host is then part of a password with a slash
		return nil, errors.New("write an @ in the subject as %40 (and / @ ? in user and password as %2F %40 %3F)")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, hidden
	}
	o := &Options{Subject: subject}
	user := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, authority = authority[:at+1], authority[at+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		o.Servers = append(o.Servers, strings.ToLower(scheme)+"://"+user+host)
	}
	if err := o.fromQuery(values); err != nil {
		return nil, err
	}
	if scheme = strings.ToLower(scheme); scheme == "tls" || scheme == "wss" || o.TLS.CA != "" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	return o, nil
}

// fromQuery sets the options of a query.
func (o *Options) fromQuery(values url.Values) error {
	for key, all := range values {
		value := all[len(all)-1]
		var err error
		switch key {
		case "stream":
			o.Stream.Name = value
		case "create":
			if o.Stream.Create, err = strconv.ParseBool(value); err != nil {
				return errors.New("create must be true or false")
			}
		case "credentials":
			o.Credentials = value
		case "nkey":
			o.NKey = value
		case "ca":
			o.TLS.CA = value
		case "insecure":
			if o.Insecure, err = strconv.ParseBool(value); err != nil {
				return errors.New("insecure must be true or false")
			}
		case "timeout":
			if o.Timeout, err = time.ParseDuration(value); err != nil {
				return errors.New("timeout must be a duration, such as 10s")
			}
		default:
			// The key is not shown: text behind a question mark in a password looks like a key.
			return errors.New("unknown key in the query: known are ca, create, credentials, insecure, nkey, stream and timeout (write a ? in a password as %3F)")
		}
	}
	return nil
}
