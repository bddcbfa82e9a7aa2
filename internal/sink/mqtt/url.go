package mqtt

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// FromURL makes options of an address for --to:
//
//	mqtts://user:password@host:8883/TOPIC/LEVELS?retain=true&clientId=NAME
//
// The topic may be a template, and may be left out. The query may also have ca (a file), expiry, keepAlive,
// timeout, and insecure, which allows the password without TLS, and with TLS trusts any certificate.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not a URL (not shown: it may hold a credential)")
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the query cannot be read (not shown: it may hold a credential)")
	}
	if u.Fragment != "" || strings.Contains(address, "#") {
		return nil, errors.New("a topic to publish to has no #; in a password it is %23")
	}
	o := &Options{URL: (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), Topic: strings.TrimPrefix(u.Path, "/")}
	o.User = u.User.Username()
	o.Password, _ = u.User.Password()
	if err := o.fromQuery(values); err != nil {
		return nil, err
	}
	if u.Scheme == "mqtts" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	return o, nil
}

// fromQuery takes the keys of a query.
func (o *Options) fromQuery(values url.Values) error {
	durations := map[string]*time.Duration{"expiry": &o.Expiry, "keepAlive": &o.KeepAlive, "timeout": &o.Timeout}
	for key, all := range values {
		value := all[len(all)-1]
		var err error
		switch key {
		case "ca":
			o.TLS.CA = value
		case "clientId":
			o.ClientID = value
		case "retain":
			if o.Retain, err = strconv.ParseBool(value); err != nil {
				return errors.New("retain is true or false")
			}
		case "insecure":
			if o.Insecure, err = strconv.ParseBool(value); err != nil {
				return errors.New("insecure is true or false")
			}
		case "expiry", "keepAlive", "timeout":
			if *durations[key], err = time.ParseDuration(value); err != nil {
				return fmt.Errorf("%s is a duration, such as 10s", key)
			}
		default:
			return errors.New("unknown key in the query: there are ca, clientId, expiry, insecure, keepAlive, retain and timeout (a ? in a password is %3F)")
		}
	}
	return nil
}
