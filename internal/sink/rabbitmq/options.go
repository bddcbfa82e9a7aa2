package rabbitmq

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the keys of a rabbitmq sink.
type Options struct {
	// URL is the server's address: amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps:// for TLS. The port is 5672, or
	// 5671 with TLS, if there is none; the vhost is / if there is none.
	URL string `yaml:"url"`
	// Exchange is the exchange to publish to; it must exist. Empty means the default exchange, which needs Queue.
	Exchange string `yaml:"exchange"`
	// RoutingKey is a text/template over the event that makes the routing key, with the field names of
	// package event, such as changes.{{.Data.Resource.Namespace}}.{{.Data.Op}} (the empty key). What the
	// template inserts adds no word: dots, stars, hashes and spaces in it become _.
	RoutingKey string `yaml:"routingKey"`
	// Queue publishes to a queue by its name, without an exchange and a routing key; it must be there.
	Queue string `yaml:"queue"`
	// AllowUnroutable takes a message for which no queue is bound as delivered, which loses it (false: it is
	// waited until one is bound).
	AllowUnroutable bool `yaml:"allowUnroutable"`
	// MaxMessageBytes bounds a body as the server's max_message_size does (what the server says when it
	// first refuses a body). What is longer is cut.
	MaxMessageBytes sink.Size `yaml:"maxMessageBytes"`
	// Heartbeat is how often the server and we show that we are there; a connection on which nothing came
	// for three times as long is given up (10 seconds, at least 1).
	Heartbeat time.Duration `yaml:"heartbeat"`
	// Timeout bounds the making of a connection, and the wait for each confirmation (10 seconds).
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows the password to be sent without TLS to another machine (false).
	Insecure bool `yaml:"insecure"`
	// TLS says whom to trust and who we are, where the URL begins with amqps://.
	TLS sink.TLS `yaml:"tls"`
}

// leastMax is the least MaxMessageBytes: an event that is cut to its names fits.
const leastMax = 8 << 10

// longest is how long a name of an exchange or a queue, and a routing key, may be: a short string of AMQP.
const longest = 255

// Validate says what is wrong with the options, naming the key, and showing no credential.
func (o Options) Validate() error {
	s, err := parseServer(o.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if _, err := keyName(o.RoutingKey); err != nil {
		return fmt.Errorf("routingKey: %w", err)
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	switch {
	case o.Exchange == "" && o.Queue == "":
		return errors.New("exchange: a rabbitmq sink needs one, or a queue")
	case o.Queue != "" && (o.Exchange != "" || o.RoutingKey != ""):
		return errors.New("queue: stands for exchange and routingKey, not beside them")
	case len(o.Exchange) > longest:
		return fmt.Errorf("exchange: longer than %d bytes", longest)
	case len(o.Queue) > longest:
		return fmt.Errorf("queue: longer than %d bytes", longest)
	case o.MaxMessageBytes != 0 && o.MaxMessageBytes < leastMax:
		return fmt.Errorf("maxMessageBytes: at least %d", leastMax)
	case o.Heartbeat != 0 && o.Heartbeat < time.Second:
		return errors.New("heartbeat: at least 1s")
	case o.Timeout < 0:
		return errors.New("timeout: not negative")
	case !s.tls && o.TLS != (sink.TLS{}):
		return errors.New("tls: the url does not begin with amqps://")
	}
	if _, ok := s.user.Password(); ok && !s.tls {
		host, _, _ := net.SplitHostPort(s.address) // parseServer joined them
		if err := sink.ClearText(o.Insecure, "the password", "amqps://", host); err != nil {
			return fmt.Errorf("url: %w", err)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Heartbeat == 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	return o
}

// keyName compiles the template of the routing key. It is nil for none.
func keyName(text string) (*sink.Name, error) {
	if text == "" {
		return nil, nil
	}
	return sink.NewName(text, cleanKey, func(key string) error {
		if len(key) > longest {
			return fmt.Errorf("a routing key of %d bytes; AMQP has %d", len(key), longest)
		}
		return nil
	})
}

// cleanKey keeps a value from being more than one word of a routing key.
func cleanKey(value string) string {
	return strings.NewReplacer(".", "_", "*", "_", "#", "_", " ", "_").Replace(value)
}

// server is what a URL says.
type server struct {
	tls            bool
	address, vhost string
	user           *url.Userinfo
}

// parseServer reads a URL. Its errors do not show it.
func parseServer(text string) (server, error) {
	if text == "" {
		return server{}, errors.New("a rabbitmq sink needs one")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // its text quotes what may be a part of a password
		return server{}, errors.New("not a URL (not shown: it may hold a credential)")
	case u.Scheme != "amqp" && u.Scheme != "amqps" || u.Hostname() == "":
		return server{}, errors.New("must begin with amqp:// or amqps:// and a host")
	case u.RawQuery != "" || u.Fragment != "":
		return server{}, errors.New("what stands behind ? and # is not known here: there are keys for it")
	}
	s := server{tls: u.Scheme == "amqps", user: u.User, vhost: "/"}
	port := u.Port()
	if port == "" {
		port = map[bool]string{false: "5672", true: "5671"}[s.tls]
	}
	s.address = net.JoinHostPort(u.Hostname(), port)
	if path := strings.TrimPrefix(u.EscapedPath(), "/"); path != "" {
		if strings.ContainsRune(path, '@') { // what stands before it is a password with a slash, not a host
			return server{}, errors.New("the vhost holds an @, which is written %40")
		}
		if strings.Contains(path, "/") {
			return server{}, errors.New("the vhost holds a slash, which is written %2F")
		}
		if s.vhost, err = url.PathUnescape(path); err != nil {
			return server{}, errors.New("the vhost is wrongly escaped")
		}
	}
	return s, nil
}
