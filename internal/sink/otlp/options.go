package otlp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of an otlp sink.
type Options struct {
	// Endpoint is the receiver's URL: https://HOST:PORT, or http://HOST:PORT without TLS. The default port is 4317, or
	// 4318 for the protocol http, whose default path is /v1/logs. A user and a password in the URL are sent as the
	// header authorization.
	Endpoint string `yaml:"endpoint"`
	// Protocol is the transport: grpc, or http for protobuf over HTTP. Default: grpc.
	Protocol Protocol `yaml:"protocol"`
	// Body is the content of a record's body: event or object. The value event means the CloudEvents JSON as a map. The
	// value object means a map of type and object, as the Collector's k8sobjects receiver sends it in its watch mode.
	// To send the objects of updates, too, set the sink's key include to [after]. Default: event.
	Body Body `yaml:"body"`
	// Headers are added to each request, such as authorization.
	Headers map[string]string `yaml:"headers"`
	// Resource adds or replaces attributes of the resource, such as deployment.environment.name.
	Resource map[string]string `yaml:"resource"`
	// Compression is how requests are compressed: gzip or none. Default: gzip.
	Compression Compression `yaml:"compression"`
	// MaxBatchBytes bounds an uncompressed request. It must be at least 64Ki; gRPC receivers accept 4Mi by default. A
	// longer batch is sent as several requests; a single change that is longer is cut. Default: 4032Ki.
	MaxBatchBytes sink.Size `yaml:"maxBatchBytes"`
	// Timeout bounds one request, including the connection for it and its answer. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows credentials to be sent without TLS to another machine: a password in the endpoint,
	// headers such as authorization, and the values of ${env:…} and ${file:…}.
	Insecure bool     `yaml:"insecure"`
	TLS      sink.TLS `yaml:"tls"`
}

// Protocol is the transport of requests.
type Protocol string

// The protocols.
const (
	GRPC Protocol = "grpc"
	HTTP Protocol = "http"
)

// Body is the content of a record's body.
type Body string

// The bodies.
const (
	BodyEvent  Body = "event"
	BodyObject Body = "object"
)

// Compression is the compression of requests.
type Compression string

// The compressions.
const (
	Gzip Compression = "gzip"
	None Compression = "none"
)

const (
	defaultBatchBytes = 4<<20 - 64<<10
	leastBatchBytes   = 64 << 10
	logsPath          = "/v1/logs"
)

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	if !slices.Contains([]Protocol{"", GRPC, HTTP}, o.Protocol) {
		return fmt.Errorf("protocol: %q is neither grpc nor http", o.Protocol)
	}
	u, err := parseEndpoint(o.Endpoint, cmp.Or(o.Protocol, GRPC))
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if err := validateHeaders(o.Headers, u.User != nil); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	if _, found := o.Resource[""]; found {
		return errors.New("resource: an attribute has no name")
	}
	switch {
	case !slices.Contains([]Body{"", BodyEvent, BodyObject}, o.Body):
		return fmt.Errorf("body: %q is neither event nor object", o.Body)
	case !slices.Contains([]Compression{"", Gzip, None}, o.Compression):
		return fmt.Errorf("compression: %q is neither gzip nor none", o.Compression)
	case o.MaxBatchBytes != 0 && o.MaxBatchBytes < leastBatchBytes:
		return fmt.Errorf("maxBatchBytes: at least %d", leastBatchBytes)
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	case u.Scheme != "https" && o.TLS != (sink.TLS{}):
		return errors.New("tls: the endpoint does not begin with https://")
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if err := sink.ClearHTTP(o.Insecure, u, o.Headers); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	return nil
}

// ClearText returns an error if a credential that the configuration reads from elsewhere would be sent without TLS.
func (o Options) ClearText(reference, value string) error {
	u, err := parseEndpoint(o.Endpoint, cmp.Or(o.Protocol, GRPC))
	if err != nil {
		return nil //nolint:nilerr // Validate returns it
	}
	sent := append(slices.Collect(maps.Values(o.Headers)), slices.Collect(maps.Values(o.Resource))...)
	if err := sink.ClearReference(o.Insecure, u, reference, value, o.Endpoint, sent...); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Protocol = cmp.Or(o.Protocol, GRPC)
	o.Body = cmp.Or(o.Body, BodyEvent)
	o.Compression = cmp.Or(o.Compression, Gzip)
	o.MaxBatchBytes = cmp.Or(o.MaxBatchBytes, defaultBatchBytes)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

var scheme = sink.Scheme{Plain: "http", Secure: "https", Example: "http://collector:4317"}

// parseEndpoint parses the URL and adds a missing port and path.
func parseEndpoint(s string, p Protocol) (*url.URL, error) {
	a, err := scheme.Parse(s)
	switch u := a.URL; {
	case err != nil:
		return nil, err
	case u.RawQuery != "" && p == GRPC || u.Fragment != "":
		return nil, errors.New("must not have a query or a fragment")
	case p == GRPC && strings.Trim(u.Path, "/") != "":
		return nil, errors.New("must not have a path with gRPC; protocol: http uses one")
	}
	port := "4317"
	if p == HTTP {
		port = "4318"
	}
	if a.Port() == "" {
		a.Host = strings.TrimSuffix(a.Host, ":") + ":" + port
	}
	if p == HTTP && strings.Trim(a.Path, "/") == "" {
		a.Path = logsPath
	}
	return a.URL, nil
}

// reserved lists the headers that the sink or the protocol sets.
var reserved = []string{
	"connection", "content-encoding", "content-length", "content-type", "host", "te", "trailer", "transfer-encoding",
	"upgrade", "user-agent",
}

// validateHeaders checks that both protocols can send the headers.
func validateHeaders(headers map[string]string, user bool) error {
	const sign = "!#$%&'*+-.^_`|~" // RFC 9110, 5.6.2, in addition to letters and digits
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		switch {
		case name == "" || strings.ContainsFunc(lower, func(r rune) bool {
			return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || strings.ContainsRune(sign, r))
		}):
			return fmt.Errorf("%q is not a header name", name)
		case seen[lower]:
			return fmt.Errorf("%s is set twice", http.CanonicalHeaderKey(name))
		case slices.Contains(reserved, lower) || strings.HasPrefix(lower, "grpc-") || strings.HasSuffix(lower, "-bin"):
			return fmt.Errorf("%s cannot be set", name)
		case lower == "authorization" && user:
			return errors.New("authorization conflicts with the user in the endpoint")
		case strings.ContainsFunc(headers[name], func(r rune) bool { return r < ' ' || r > '~' }): // gRPC's limit
			return fmt.Errorf("the value of %s contains a character that is not printable ASCII, such as a newline after a secret from a file", name)
		}
		seen[lower] = true
	}
	return nil
}
