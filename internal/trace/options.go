package trace

import (
	"errors"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/otlp"
)

// Options are the options under the key traces.
type Options struct {
	// Endpoint is the receiver's URL, for protobuf over HTTP: https://HOST:PORT, or http://HOST:PORT without TLS. The
	// default port is 4318, and the default path /v1/traces. A user and a password in it are sent as the header
	// authorization.
	Endpoint string `yaml:"endpoint"`
	// Sample is the share of changes that are traced, from 0 to 1. The id of a change decides, so that all its spans are
	// exported or none of them. Default: 1.
	Sample float64 `yaml:"sample"`
	// Headers are added to each request, such as authorization.
	Headers map[string]string `yaml:"headers"`
	// Resource adds or replaces attributes of the resource, such as deployment.environment.name.
	Resource map[string]string `yaml:"resource"`
	// Timeout bounds one request, including the connection for it and its answer. It is at most 1m. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows credentials to be sent without TLS to another machine: a password in the endpoint,
	// headers such as authorization, and the values of ${env:…} and ${file:…}.
	Insecure bool     `yaml:"insecure"`
	TLS      sink.TLS `yaml:"tls"`
}

// DefaultOptions returns the options of a file that sets none.
func DefaultOptions() Options { return Options{Sample: 1} }

// Validate returns an error that names the wrong key and shows no credential.
func (o *Options) Validate() error {
	if o.Endpoint == "" {
		return errors.New("endpoint: missing; an example is http://collector:4318")
	}
	if math.IsNaN(o.Sample) || o.Sample < 0 || o.Sample > 1 {
		return errors.New("sample: want a number from 0 to 1, such as 0.1 for about every tenth change")
	}
	if o.Timeout > giveUp {
		return errors.New("timeout: want at most 1m, because spans are dropped after that time")
	}
	return o.otlp().Validate()
}

// ClearText returns an error if a credential that the configuration reads from elsewhere would be sent without TLS.
func (o *Options) ClearText(reference, value string) error {
	return o.otlp().ClearText(reference, value)
}

// otlp returns the options of a sink for the same receiver.
func (o *Options) otlp() otlp.Options {
	return otlp.Options{
		Endpoint: o.Endpoint, Protocol: otlp.HTTP, Headers: o.Headers, Resource: o.Resource, Timeout: o.Timeout,
		Insecure: o.Insecure, TLS: o.TLS,
	}
}

// client returns the options of a client for traces. They are valid.
func (o *Options) client() otlp.Options {
	c := o.otlp()
	if u, err := url.Parse(c.Endpoint); err == nil && strings.Trim(u.Path, "/") == "" { // otherwise it would be that of logs
		u.Path = "/v1/traces"
		c.Endpoint = u.String()
	}
	return c
}
