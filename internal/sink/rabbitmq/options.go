package rabbitmq

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a rabbitmq sink.
type Options struct {
	// URL is the server's address: amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps:// for TLS. The default port is
	// 5672, or 5671 with TLS; the default vhost is /.
	URL string `yaml:"url"`
	// Exchange is the exchange to publish to; it must exist. Empty means the default exchange, which needs queue.
	Exchange string `yaml:"exchange"`
	// RoutingKey is the routing key: a text, or a text/template over the event, such as
	// changes.{{.Data.Resource.Namespace}}.{{.Data.Op}}. The template has the field names of package event. In its
	// output, dots, stars, hashes and spaces become _, so that a value adds no word. Default: the empty key.
	RoutingKey string `yaml:"routingKey"`
	// Queue is a queue to publish to by name, without an exchange and a routing key; it must exist.
	Queue string `yaml:"queue"`
	// AllowUnroutable counts a message as delivered even if no queue is bound for it; such a message is lost. Otherwise
	// the sink waits until a queue is bound.
	AllowUnroutable bool `yaml:"allowUnroutable"`
	// MaxMessageBytes bounds a message's body, like the server's max_message_size. A longer change is cut. Default:
	// learned from the server's first refusal.
	MaxMessageBytes sink.Size `yaml:"maxMessageBytes"`
	// Heartbeat is the interval of heartbeats in both directions; a connection that is silent for three intervals is
	// closed. The interval must be at least one second. Default: 10s.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// Timeout bounds each attempt to connect and each wait for a confirmation. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows the password to be sent without TLS to another machine.
	Insecure bool `yaml:"insecure"`
	// TLS configures the trusted certificates and the client certificate for amqps://.
	TLS sink.TLS `yaml:"tls"`
}

// minMax is the minimum of MaxMessageBytes: an event that is cut to its names fits.
const minMax = 8 << 10

// longest is the maximum length of the name of an exchange or a queue, and of a routing key: AMQP's short string.
const longest = 255

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	s, err := parseServer(o.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if _, err := keyName(o.RoutingKey); err != nil {
		return fmt.Errorf("routingKey: %w", err)
	}
	switch {
	case o.Exchange == "" && o.Queue == "":
		return errors.New("exchange: missing; set exchange or queue")
	case o.Queue != "" && (o.Exchange != "" || o.RoutingKey != ""):
		return errors.New("queue: excludes exchange and routingKey")
	case len(o.Exchange) > longest:
		return fmt.Errorf("exchange: longer than %d bytes", longest)
	case len(o.Queue) > longest:
		return fmt.Errorf("queue: longer than %d bytes", longest)
	case o.MaxMessageBytes != 0 && o.MaxMessageBytes < minMax:
		return fmt.Errorf("maxMessageBytes: at least %d", minMax)
	case o.Heartbeat != 0 && o.Heartbeat < time.Second:
		return errors.New("heartbeat: at least 1s")
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	}
	return scheme.Check(s.Address, o.TLS, o.Insecure)
}

func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

// keyName compiles the template of the routing key. It returns nil for an empty text.
func keyName(text string) (*sink.Name, error) {
	if text == "" {
		return nil, nil
	}
	return sink.NewName(text, cleanKey, func(key string) error {
		if len(key) > longest {
			return fmt.Errorf("a routing key of %d bytes exceeds AMQP's limit of %d", len(key), longest)
		}
		return nil
	})
}

// cleanKey turns a value into a single word of a routing key.
func cleanKey(value string) string {
	return strings.NewReplacer(".", "_", "*", "_", "#", "_", " ", "_").Replace(value)
}

var scheme = sink.Scheme{Plain: "amqp", Secure: "amqps", PlainPort: "5672", SecurePort: "5671"}

// server is a parsed URL.
type server struct {
	sink.Address
	vhost string
}

// parseServer parses a URL. Its errors do not quote it.
func parseServer(text string) (s server, err error) {
	if s.Address, err = scheme.Parse(text); err != nil {
		return s, err
	}
	s.vhost = "/"
	path := strings.TrimPrefix(s.EscapedPath(), "/")
	switch {
	case s.RawQuery != "" || s.Fragment != "":
		return s, errors.New("must not have a query or a fragment: options have their own keys")
	case strings.ContainsRune(path, '@'): // the host is then part of a password with a slash
		return s, errors.New("write an @ in the vhost as %40")
	case strings.Contains(path, "/"):
		return s, errors.New("write a slash in the vhost as %2F")
	case path == "":
		return s, nil
	}
	if s.vhost, err = url.PathUnescape(path); err != nil {
		return s, errors.New("the vhost has an invalid escape")
	}
	return s, nil
}
