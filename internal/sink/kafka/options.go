package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a kafka sink.
type Options struct {
	// Brokers are the host:port of some brokers, from which the client learns the others; the default port is 9092.
	Brokers []string `yaml:"brokers"`
	// Topic is the name of the topic: a text, or a text/template over the event, such as
	// changes.{{.Data.Resource.Namespace}}. The template has the field names of package event. In its output,
	// characters that a topic must not contain become dashes.
	Topic string `yaml:"topic"`
	// AllowAutoTopicCreation lets the broker create a missing topic, if the broker's settings allow that. Otherwise the
	// sink waits for the topic.
	AllowAutoTopicCreation bool `yaml:"allowAutoTopicCreation"`
	// SASL authenticates by user and password.
	SASL SASL `yaml:"sasl"`
	// Encrypted uses TLS even if tls is empty, with the system's certificates.
	Encrypted bool `yaml:"encrypted"`
	// Insecure allows the password of the mechanism plain to be sent without TLS to another machine.
	Insecure bool `yaml:"insecure"`
	// TLS uses TLS, and configures the trusted certificates and the client certificate.
	TLS sink.TLS `yaml:"tls"`
	// Compression is how records are compressed: none, gzip, snappy, lz4 or zstd. Default: snappy.
	Compression string `yaml:"compression"`
	// MaxMessageBytes bounds a record with its headers before compression; the topic's max.message.bytes bounds it
	// after compression. A longer change is cut. Default: 1000012.
	MaxMessageBytes sink.Size `yaml:"maxMessageBytes"`
	// ClientID is the client id for the brokers' logs and quotas. Default: tattler.
	ClientID string `yaml:"clientID"`
	// Timeout bounds each attempt to connect, and each batch from its sending to its acknowledgement, including the
	// client's own retries. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
}

// SASL is a user, a password, and a mechanism.
type SASL struct {
	// Mechanism is the SASL mechanism: plain, scram-sha-256 or scram-sha-512.
	Mechanism string `yaml:"mechanism"`
	// User is the user to log in as.
	User string `yaml:"user"`
	// Password is the user's password.
	Password string `yaml:"password"`
}

// The SASL mechanisms.
const (
	plainText   = "plain"
	scramSHA256 = "scram-sha-256"
	scramSHA512 = "scram-sha-512"
)

// codecs maps names to compressions. A batch that does not become shorter is sent uncompressed.
var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

const (
	defaultPort = "9092"
	// defaultMax is the default of brokers of every version.
	defaultMax = 1000012
	// minMax leaves space for headers, and for an event that is cut to its names.
	minMax = 8 << 10
	maxMax = 1 << 30
	// minTimeout is the client's minimum.
	minTimeout = 100 * time.Millisecond
)

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	hosts, err := brokers(o.Brokers)
	if err != nil {
		return fmt.Errorf("brokers: %w", err)
	}
	if _, err := topicName(o.Topic); err != nil {
		return fmt.Errorf("topic: %w", err)
	}
	if err := o.SASL.validate(); err != nil {
		return fmt.Errorf("sasl: %w", err)
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if _, ok := codecs[o.Compression]; !ok && o.Compression != "" {
		return fmt.Errorf("compression: %q is not one of %s", o.Compression, strings.Join(slices.Sorted(maps.Keys(codecs)), ", "))
	}
	switch {
	case o.MaxMessageBytes != 0 && (o.MaxMessageBytes < minMax || o.MaxMessageBytes > maxMax):
		return fmt.Errorf("maxMessageBytes: must be between %d and %d", minMax, maxMax)
	case o.Timeout != 0 && o.Timeout < minTimeout:
		return fmt.Errorf("timeout: at least %s", minTimeout)
	}
	if o.showsPassword() {
		for _, address := range hosts {
			if err := o.clearText(address); err != nil {
				return fmt.Errorf("sasl: %w", err)
			}
		}
	}
	return nil
}

// encrypted reports whether connections use TLS.
func (o Options) encrypted() bool { return o.Encrypted || o.TLS != (sink.TLS{}) }

// showsPassword reports whether a connection would expose the password on the network.
func (o Options) showsPassword() bool { return o.SASL.Mechanism == plainText && !o.encrypted() }

// clearText returns an error if the password would be sent to a broker, host:port, in clear text.
func (o Options) clearText(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	return sink.ClearText(o.Insecure, "the password", "encrypted: true or scram-sha-512", host)
}

func (o Options) withDefaults() Options {
	o.Compression = cmp.Or(o.Compression, "snappy")
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, defaultMax)
	o.ClientID = cmp.Or(o.ClientID, "tattler")
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

func (s SASL) validate() error {
	switch {
	case s == SASL{}:
		return nil
	case s.Mechanism == "":
		return fmt.Errorf("mechanism: missing; one of %s, %s, %s", plainText, scramSHA256, scramSHA512)
	case s.Mechanism != plainText && s.Mechanism != scramSHA256 && s.Mechanism != scramSHA512:
		return fmt.Errorf("mechanism: %q is not one of %s, %s, %s", s.Mechanism, plainText, scramSHA256, scramSHA512)
	case s.User == "" || s.Password == "":
		return errors.New("user and password are needed")
	}
	return nil
}

// brokers adds missing ports. Its errors do not quote an address, because it may contain a password.
func brokers(hosts []string) ([]string, error) {
	if len(hosts) == 0 {
		return nil, errors.New("missing; name at least one")
	}
	out := make([]string, len(hosts))
	for i, h := range hosts {
		host, port, err := net.SplitHostPort(h)
		if err != nil { // a bare IPv6 address has colons as well
			host, port = strings.Trim(h, "[]"), defaultPort
			if strings.Contains(host, ":") && net.ParseIP(host) == nil {
				return nil, fmt.Errorf("number %d is not host:port", i+1)
			}
		}
		if n, err := strconv.Atoi(port); host == "" || strings.ContainsAny(host, "/@ \t?#") || err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("number %d is not host:port", i+1)
		}
		out[i] = net.JoinHostPort(host, port)
	}
	return out, nil
}

// topicName compiles the template of the topic.
func topicName(text string) (*sink.Name, error) {
	if text == "" {
		return nil, errors.New("missing")
	}
	return sink.NewName(text, cleanTopic, checkTopic)
}

func legal(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

func cleanTopic(value string) string {
	return strings.Map(func(r rune) rune {
		if legal(r) {
			return r
		}
		return '-'
	}, value)
}

// checkTopic applies the rules of org.apache.kafka.common.internals.Topic.
func checkTopic(name string) error {
	const longest = 249
	switch {
	case name == "." || name == "..":
		return fmt.Errorf("%q is not a valid topic name", name)
	case len(name) > longest:
		return fmt.Errorf("%q has more than %d characters", name, longest)
	case strings.ContainsFunc(name, func(r rune) bool { return !legal(r) }):
		return fmt.Errorf("%q is not a valid topic name: use letters, digits, dots, _ and -", name)
	}
	return nil
}
