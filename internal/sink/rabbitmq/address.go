package rabbitmq

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// queryKeys are the query keys of an address.
var queryKeys = []string{"ca", "exchange", "insecure", "key", "queue"}

// FromURL returns the options of an address for --to:
// amqp://USER:PASSWORD@HOST:PORT/VHOST?exchange=…&key=TEMPLATE, or ?queue=…. Its insecure=true allows the
// password without TLS, and with TLS trusts any certificate. No error shows a part of it that may be a password.
func FromURL(address string) (*Options, error) {
	base, query, _ := strings.Cut(address, "?")
	if _, err := parseServer(base); err != nil {
		return nil, fmt.Errorf("%w (write / @ and ? in user and password as %%2F %%40 %%3F)", err)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("invalid query: want KEY=VALUE&KEY=VALUE")
	}
	o := &Options{URL: base}
	for key, all := range values {
		if !slices.Contains(queryKeys, key) {
			return nil, fmt.Errorf("unknown key in the query: known are %s", strings.Join(queryKeys, ", "))
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
				return nil, errors.New("insecure must be true or false")
			}
			if o.Insecure = value == "true"; strings.HasPrefix(strings.ToLower(base), "amqps:") {
				o.TLS.Insecure, o.Insecure = o.Insecure, false
			}
		}
	}
	return o, nil
}
