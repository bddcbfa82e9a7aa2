package kafka

import (
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

// Options are the keys of a kafka sink.
type Options struct {
	// Brokers are the host:port of some brokers, from which the others are learned; the port is 9092 if
	// there is none.
	Brokers []string `yaml:"brokers"`
	// Topic is a text/template over the event that makes the topic, with the field names of package
	// event, such as changes or changes.{{.Data.Resource.Namespace}}. What is not legal in the name of a
	// topic becomes a dash in what the template inserts.
	Topic string `yaml:"topic"`
	// AllowAutoTopicCreation has the broker create a topic that is not there, where its own settings allow
	// that (false: the topic is waited for).
	AllowAutoTopicCreation bool `yaml:"allowAutoTopicCreation"`
	// SASL says who we are, by user and password.
	SASL SASL `yaml:"sasl"`
	// Encrypted speaks TLS also where tls is empty, which trusts the system's certificates then (false).
	Encrypted bool `yaml:"encrypted"`
	// Insecure allows the password of the mechanism plain to be sent without TLS to another machine (false).
	Insecure bool `yaml:"insecure"`
	// TLS speaks TLS, and says whom to trust and who we are.
	TLS sink.TLS `yaml:"tls"`
	// Compression is how records are compressed: none, gzip, snappy, lz4 or zstd (snappy).
	Compression string `yaml:"compression"`
	// MaxMessageBytes bounds a record before its compression, its headers included, as the topic's
	// max.message.bytes does after it (1000012). What is longer is cut.
	MaxMessageBytes sink.Size `yaml:"maxMessageBytes"`
	// ClientID is how we call ourselves to the brokers, for their logs and quotas (tattler).
	ClientID string `yaml:"clientID"`
	// Timeout bounds the making of connections, and a batch from its sending to its acknowledgement,
	// the client's own retries included (10 seconds).
	Timeout time.Duration `yaml:"timeout"`
}

// SASL is a user, a password, and how they are shown.
type SASL struct {
	// Mechanism is how the password is proven: plain, scram-sha-256 or scram-sha-512.
	Mechanism string `yaml:"mechanism"`
	// User is who we log in as.
	User string `yaml:"user"`
	// Password is the one of that user.
	Password string `yaml:"password"`
}

// The mechanisms of SASL.
const (
	plainText   = "plain"
	scramSHA256 = "scram-sha-256"
	scramSHA512 = "scram-sha-512"
)

// codecs are the compressions by name. A batch that does not become shorter goes as it is.
var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

const (
	defaultPort = "9092"
	// defaultMax is what brokers of any version take.
	defaultMax = 1000012
	// leastMax leaves room for headers, and for an event that is cut to its names.
	leastMax = 8 << 10
	mostMax  = 1 << 30
	// leastTimeout is the least that the client takes.
	leastTimeout = 100 * time.Millisecond
)

// Validate says what is wrong with the options, naming the key, and showing no credential.
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
		return fmt.Errorf("compression: %q is none of %s", o.Compression, strings.Join(slices.Sorted(maps.Keys(codecs)), ", "))
	}
	switch {
	case o.MaxMessageBytes != 0 && (o.MaxMessageBytes < leastMax || o.MaxMessageBytes > mostMax):
		return fmt.Errorf("maxMessageBytes: from %d to %d", leastMax, mostMax)
	case o.Timeout != 0 && o.Timeout < leastTimeout:
		return fmt.Errorf("timeout: at least %s", leastTimeout)
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

// encrypted reports whether connections speak TLS.
func (o Options) encrypted() bool { return o.Encrypted || o.TLS != (sink.TLS{}) }

// showsPassword reports whether a connection would show the password to who listens.
func (o Options) showsPassword() bool { return o.SASL.Mechanism == plainText && !o.encrypted() }

// clearText refuses to show the password on the way to a broker, host:port.
func (o Options) clearText(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	return sink.ClearText(o.Insecure, "the password", "encrypted: true or scram-sha-512", host)
}

func (o Options) withDefaults() Options {
	if o.Compression == "" {
		o.Compression = "snappy"
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = defaultMax
	}
	if o.ClientID == "" {
		o.ClientID = "tattler"
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	return o
}

func (s SASL) validate() error {
	switch {
	case s == SASL{}:
		return nil
	case s.Mechanism == "":
		return fmt.Errorf("mechanism: one of %s, %s, %s", plainText, scramSHA256, scramSHA512)
	case s.Mechanism != plainText && s.Mechanism != scramSHA256 && s.Mechanism != scramSHA512:
		return fmt.Errorf("mechanism: %q is none of %s, %s, %s", s.Mechanism, plainText, scramSHA256, scramSHA512)
	case s.User == "" || s.Password == "":
		return errors.New("user and password are needed")
	}
	return nil
}

// brokers adds the port where there is none. An error does not show what is wrong: in an address it may be
// a part of a password.
func brokers(hosts []string) ([]string, error) {
	if len(hosts) == 0 {
		return nil, errors.New("a kafka sink needs one at least")
	}
	out := make([]string, len(hosts))
	for i, h := range hosts {
		host, port, err := net.SplitHostPort(h)
		if err != nil { // a bare IPv6 address has colons as well
			host, port = strings.Trim(h, "[]"), defaultPort
			if strings.Contains(host, ":") && net.ParseIP(host) == nil {
				return nil, fmt.Errorf("number %d is no host:port", i+1)
			}
		}
		if n, err := strconv.Atoi(port); host == "" || strings.ContainsAny(host, "/@ \t?#") || err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("number %d is no host:port", i+1)
		}
		out[i] = net.JoinHostPort(host, port)
	}
	return out, nil
}

// topicName compiles the template of the topic.
func topicName(text string) (*sink.Name, error) {
	if text == "" {
		return nil, errors.New("a kafka sink needs one")
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

// checkTopic is Kafka's own check: org.apache.kafka.common.internals.Topic.
func checkTopic(name string) error {
	const longest = 249
	switch {
	case name == "." || name == "..":
		return fmt.Errorf("%q is not legal as the name of a topic", name)
	case len(name) > longest:
		return fmt.Errorf("%q has more than %d characters", name, longest)
	case strings.ContainsFunc(name, func(r rune) bool { return !legal(r) }):
		return fmt.Errorf("%q is not legal as the name of a topic: letters, digits, dots, _ and - are", name)
	}
	return nil
}
