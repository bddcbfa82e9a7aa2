package mqtt

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
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
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("invalid query (not shown: it may contain a credential)")
	}
	if u.Fragment != "" || strings.Contains(address, "#") {
		return nil, errors.New("a topic to publish to contains no #; write a # in a password as %23")
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

// fromQuery sets the options of a query.
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
				return errors.New("retain must be true or false")
			}
		case "insecure":
			if o.Insecure, err = strconv.ParseBool(value); err != nil {
				return errors.New("insecure must be true or false")
			}
		case "expiry", "keepAlive", "timeout":
			if *durations[key], err = time.ParseDuration(value); err != nil {
				return fmt.Errorf("%s must be a duration, such as 10s", key)
			}
		default:
			return errors.New("unknown key in the query: known are ca, clientId, expiry, insecure, keepAlive, retain and timeout (write a ? in a password as %3F)")
		}
	}
	return nil
}
