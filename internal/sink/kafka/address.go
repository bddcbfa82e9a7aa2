package kafka

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// queryKeys are the query keys of an address.
var queryKeys = []string{"allowAutoTopicCreation", "ca", "compression", "insecure", "sasl", "tls"}

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
	if err := o.query(query); err != nil {
		return nil, err
	}
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

func (o *Options) query(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("invalid query: want KEY=VALUE&KEY=VALUE")
	}
	for key, all := range values {
		if !slices.Contains(queryKeys, key) {
			return fmt.Errorf("unknown key in the query: known are %s", strings.Join(queryKeys, ", "))
		}
		value := all[len(all)-1]
		switch key {
		case "sasl":
			if o.SASL.User == "" {
				return errors.New("sasl: needs a user and a password before the brokers")
			}
			o.SASL.Mechanism = value
		case "compression":
			o.Compression = value
		case "ca":
			o.TLS.CA = value
		default:
			yes, err := strconv.ParseBool(value)
			if err != nil {
				return fmt.Errorf("%s must be true or false", key)
			}
			switch key {
			case "tls":
				o.Encrypted = yes
			case "insecure":
				o.Insecure = yes
			case "allowAutoTopicCreation":
				o.AllowAutoTopicCreation = yes
			}
		}
	}
	return nil
}
