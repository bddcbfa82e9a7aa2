package nats

import (
	"errors"
	"net/url"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// FromURL returns the options of an address for --to:
//
//	nats://user:password@host:4222,host:4222/SUBJECT?stream=NAME&create=true
//
// A user without a password is a token. The subject may be a template, and is optional. The query may also contain
// credentials and nkey (files), ca (a file), timeout, and insecure, which allows the password without TLS, and with
// TLS trusts any certificate.
func FromURL(address string) (*Options, error) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return nil, errors.New("must begin with nats://, tls://, ws:// or wss:// and a host")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	subject, err := url.PathUnescape(path)
	if err != nil {
		return nil, errors.New("not a URL (not shown: it may contain a credential)")
	}
	if strings.ContainsRune(path, '@') { // the host is then part of a password with a slash
		return nil, errors.New("write an @ in the subject as %40 (and / @ ? in user and password as %2F %40 %3F)")
	}
	o := &Options{Subject: subject}
	user := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, authority = authority[:at+1], authority[at+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		o.Servers = append(o.Servers, strings.ToLower(scheme)+"://"+user+host)
	}
	err = sink.Query{
		"stream": sink.Text(&o.Stream.Name), "create": sink.Bool(&o.Stream.Create), "credentials": sink.Text(&o.Credentials),
		"nkey": sink.Text(&o.NKey), "ca": sink.Text(&o.TLS.CA), "insecure": sink.Bool(&o.Insecure), "timeout": sink.Duration(&o.Timeout),
	}.Decode(query, sink.PasswordHint)
	if err != nil {
		return nil, err
	}
	if scheme = strings.ToLower(scheme); scheme == "tls" || scheme == "wss" || o.TLS.CA != "" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	return o, nil
}
