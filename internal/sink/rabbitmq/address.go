package rabbitmq

import (
	"fmt"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// FromURL returns the options of an address for --to:
// amqp://USER:PASSWORD@HOST:PORT/VHOST?exchange=…&key=TEMPLATE, or ?queue=…. Its insecure=true allows the
// password without TLS, and with TLS trusts any certificate. No error shows a part of it that may be a password.
func FromURL(address string) (*Options, error) {
	base, query, _ := strings.Cut(address, "?")
	if _, err := parseServer(base); err != nil {
		return nil, fmt.Errorf("%w (write / @ and ? in user and password as %%2F %%40 %%3F)", err)
	}
	o := &Options{URL: base}
	err := sink.Query{
		"exchange": sink.Text(&o.Exchange), "key": sink.Text(&o.RoutingKey), "queue": sink.Text(&o.Queue),
		"ca": sink.Text(&o.TLS.CA), "insecure": sink.Bool(&o.Insecure),
	}.Decode(query, sink.PasswordHint)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.ToLower(base), "amqps:") {
		o.TLS.Insecure, o.Insecure = o.Insecure, false
	}
	return o, nil
}
