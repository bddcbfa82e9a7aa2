package redis

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

// settings are the query keys of an address.
var settings = map[string]func(o *Options, value string) error{
	"stream": func(o *Options, v string) error { o.Stream = v; return nil },
	"ca":     func(o *Options, v string) error { o.TLS.CA = v; return nil },
	"cert":   func(o *Options, v string) error { o.TLS.Cert = v; return nil },
	"key":    func(o *Options, v string) error { o.TLS.Key = v; return nil },
	"maxLen": func(o *Options, v string) (err error) {
		o.MaxLen, err = strconv.ParseInt(v, 10, 64)
		return err
	},
	"insecure": func(o *Options, v string) (err error) {
		o.Insecure, err = strconv.ParseBool(v)
		return err
	},
	"timeout": func(o *Options, v string) (err error) {
		o.Timeout, err = time.ParseDuration(v)
		return err
	},
}

// FromURL returns the options of an address for --to: redis://USER:PASSWORD@HOST:PORT/DB?stream=NAME, or rediss://
// with TLS. Its insecure=true allows the password without TLS, and with TLS trusts any certificate. No error shows a
// credential.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil { // its text may quote part of a password
		return nil, errors.New("not a URL")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("invalid query")
	}
	o := &Options{}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		set := settings[name]
		if set == nil {
			return nil, fmt.Errorf("unknown key in the query: known are %s (write a ? in a password as %%3F)", strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if err := set(o, query.Get(name)); err != nil {
			return nil, fmt.Errorf("option %s: %w", name, err)
		}
	}
	if u.Scheme == "rediss" {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	u.RawQuery = ""
	o.URL = u.String()
	return o, nil
}
