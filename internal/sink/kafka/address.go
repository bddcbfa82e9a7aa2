package kafka

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// FromURL returns the options of an address for --to:
// kafka://USER:PASSWORD@HOST:PORT,HOST:PORT/TOPIC?sasl=…&tls=true.
// Special characters in user, password and topic are percent-encoded, except for a template's braces and spaces. Its
// insecure=true allows the password without TLS, and with TLS trusts any certificate. FromURL does not use net/url,
// which supports only one port. Its errors quote nothing of the address, because it may contain a password.
func FromURL(address string) (*Options, error) {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		return nil, errors.New("want kafka://HOST:PORT/TOPIC")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	user, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, hosts = authority[:at], authority[at+1:]
	}
	o := &Options{Brokers: strings.Split(hosts, ",")}
	if _, err := brokers(o.Brokers); err != nil {
		return nil, fmt.Errorf("brokers: %w (write / @ and ? in user and password as %%2F %%40 %%3F)", err)
	}
	topic, err := url.PathUnescape(path)
	if err != nil || strings.ContainsAny(path, "@/") {
		return nil, errors.New("topic: the path after the brokers must be the topic alone")
	}
	o.Topic = topic
	if err := o.credentials(user); err != nil {
		return nil, err
	}
	mechanism := o.SASL.Mechanism
	err = sink.Query{
		"sasl": sink.Text(&mechanism), "compression": sink.Text(&o.Compression), "ca": sink.Text(&o.TLS.CA), "tls": sink.Bool(&o.Encrypted),
		"insecure": sink.Bool(&o.Insecure), "allowAutoTopicCreation": sink.Bool(&o.AllowAutoTopicCreation),
	}.Decode(query, sink.PasswordHint)
	switch {
	case err != nil:
		return nil, err
	case mechanism != "" && o.SASL.User == "":
		return nil, errors.New("sasl: needs a user and a password before the brokers")
	}
	o.SASL.Mechanism = mechanism
	if o.Insecure && (o.Encrypted || o.TLS.CA != "") {
		o.TLS.Insecure, o.Insecure = true, false
	}
	return o, nil
}

func (o *Options) credentials(user string) error {
	if user == "" {
		return nil
	}
	name, password, _ := strings.Cut(user, ":")
	var errs [2]error
	o.SASL.User, errs[0] = url.PathUnescape(name)
	o.SASL.Password, errs[1] = url.PathUnescape(password)
	if errors.Join(errs[:]...) != nil { // its text quotes the input
		return errors.New("user and password: write a % that encodes nothing as %25")
	}
	o.SASL.Mechanism = plainText
	return nil
}
