package rabbitmq

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// queryKeys are what an address for --to may have behind its question mark.
var queryKeys = []string{"ca", "exchange", "insecure", "key", "queue"}

// FromURL reads an address as --to takes it: amqp://USER:PASSWORD@HOST:PORT/VHOST?exchange=…&key=TEMPLATE, or
// ?queue=…. Its insecure=true allows the password without TLS, and with TLS trusts any certificate. No error shows a part of it that may be a password.
func FromURL(address string) (*Options, error) {
	base, query, _ := strings.Cut(address, "?")
	if _, err := parseServer(base); err != nil {
		return nil, fmt.Errorf("%w (in user and password, / @ and ? are written %%2F %%40 %%3F)", err)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("what stands behind the question mark is not KEY=VALUE&KEY=VALUE")
	}
	o := &Options{URL: base}
	for key, all := range values {
		if !slices.Contains(queryKeys, key) {
			return nil, fmt.Errorf("unknown key behind the question mark; there are %s", strings.Join(queryKeys, ", "))
		}
		switch value := all[len(all)-1]; key {
		case "exchange":
			o.Exchange = value
		case "key":
			o.RoutingKey = value
		case "queue":
			o.Queue = value
		case "ca":
			o.TLS.CA = value
		case "insecure":
			if value != "true" && value != "false" {
				return nil, errors.New("insecure: neither true nor false")
			}
			if o.Insecure = value == "true"; strings.HasPrefix(strings.ToLower(base), "amqps:") {
				o.TLS.Insecure, o.Insecure = o.Insecure, false
			}
		}
	}
	return o, nil
}
