package kafka

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// queryKeys are what an address for --to may have behind its question mark.
var queryKeys = []string{"allowAutoTopicCreation", "ca", "compression", "insecure", "sasl", "tls"}

// FromURL reads an address as --to takes it: kafka://USER:PASSWORD@HOST:PORT,HOST:PORT/TOPIC?sasl=…&tls=true.
// What is special in user, password and topic is percent-encoded, but a template's braces and spaces need
// not be. Its insecure=true allows the password without TLS, and with TLS trusts any certificate. It is read by hand, as net/url knows only one port. No error shows a part of the address, since
// what is wrong may be a password.
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
		return nil, fmt.Errorf("brokers: %w (in user and password, / @ and ? are written %%2F %%40 %%3F)", err)
	}
	topic, err := url.PathUnescape(path)
	if err != nil || strings.ContainsAny(path, "@/") {
		return nil, errors.New("topic: behind the brokers and one slash comes the topic alone")
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
	if errors.Join(errs[:]...) != nil { // its text quotes
		return errors.New("user and password: a % that encodes nothing is written %25")
	}
	o.SASL.Mechanism = plainText
	return nil
}

func (o *Options) query(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("what stands behind the question mark is not KEY=VALUE&KEY=VALUE")
	}
	for key, all := range values {
		if !slices.Contains(queryKeys, key) {
			return fmt.Errorf("unknown key behind the question mark; there are %s", strings.Join(queryKeys, ", "))
		}
		value := all[len(all)-1]
		switch key {
		case "sasl":
			if o.SASL.User == "" {
				return errors.New("sasl: a user and a password must stand before the brokers")
			}
			o.SASL.Mechanism = value
		case "compression":
			o.Compression = value
		case "ca":
			o.TLS.CA = value
		default:
			yes, err := strconv.ParseBool(value)
			if err != nil {
				return fmt.Errorf("%s: neither true nor false", key)
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
