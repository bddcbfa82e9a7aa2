package mqtt

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of an MQTT sink.
type Options struct {
	// URL is the server's address: mqtt://HOST:1883, or mqtts://HOST:8883 for TLS. The ports are optional.
	URL string `yaml:"url"`
	// Topic is a text/template over the event that makes the topic. The template has the field names of package event.
	// In its output, slashes, +, # and control characters become _, and so does an empty value, such as the namespace
	// of a node. Default: tattler/{{.Data.Resource.Namespace}}/{{.Data.Resource.Resource}}/{{.Data.Op}}.
	Topic string `yaml:"topic"`
	// Retain makes the server keep the last message of each topic for later subscribers.
	Retain bool `yaml:"retain"`
	// Expiry is how long the server keeps a message for an absent subscriber, in whole seconds. Default: for ever.
	Expiry time.Duration `yaml:"expiry"`
	// ClientID is the client id of the connection. If two connections have the same id, the server closes the older
	// one. Default: chosen by the server.
	ClientID string `yaml:"clientId"`
	// User and Password are the credentials, if the server needs them. A password without a user is allowed, for
	// example a token.
	User     string `yaml:"user"`
	Password string `yaml:"password"`
	// KeepAlive is the silence after which the server may drop the connection, in whole seconds. The sink sends a
	// ping twice in that time. The server may choose another interval. Default: 30s.
	KeepAlive time.Duration `yaml:"keepAlive"`
	// Timeout bounds each attempt to connect and each wait for an answer. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows the password to be sent without TLS to another machine.
	Insecure bool `yaml:"insecure"`
	// TLS configures the trusted certificates and the client certificate for mqtts://.
	TLS sink.TLS `yaml:"tls"`
}

const (
	defaultTopic     = "tattler/{{.Data.Resource.Namespace}}/{{.Data.Resource.Resource}}/{{.Data.Op}}"
	defaultKeepAlive = 30 * time.Second
	// maxText is the maximum length of a text in MQTT, in bytes.
	maxText = math.MaxUint16
)

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	u, err := parseURL(o.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	o = o.withDefaults()
	if _, err := topics(o.Topic); err != nil {
		return fmt.Errorf("topic: %w", err)
	}
	for _, text := range []struct{ key, value string }{{"clientId", o.ClientID}, {"user", o.User}} {
		if err := checkText(text.value); err != nil {
			return fmt.Errorf("%s: %w", text.key, err)
		}
	}
	switch {
	case len(o.Password) > maxText:
		return fmt.Errorf("password: longer than %d bytes", maxText)
	case o.Expiry < 0 || o.Expiry%time.Second != 0 || o.Expiry/time.Second > math.MaxUint32:
		return errors.New("expiry: whole seconds, at most 136 years")
	case o.KeepAlive < time.Second || o.KeepAlive%time.Second != 0 || o.KeepAlive/time.Second > math.MaxUint16:
		return errors.New("keepAlive: whole seconds, from 1s to 18h")
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	}
	if err := scheme.Check(u, o.TLS, o.Insecure); err != nil {
		return err
	}
	if o.Password != "" && !u.Secure {
		if err := sink.ClearText(o.Insecure, "it", "mqtts://", u.Hostname()); err != nil {
			return fmt.Errorf("password: %w", err)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Topic = cmp.Or(o.Topic, defaultTopic)
	o.KeepAlive = cmp.Or(o.KeepAlive, defaultKeepAlive)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

var scheme = sink.Scheme{Plain: "mqtt", Secure: "mqtts", PlainPort: "1883", SecurePort: "8883", Example: "mqtt://127.0.0.1:1883"}

// parseURL parses the address of a server. Its errors do not quote it, because it may contain a password.
func parseURL(s string) (sink.Address, error) {
	u, err := scheme.Parse(s)
	switch {
	case err != nil:
		return u, err
	case u.User != nil:
		return u, errors.New("must not contain a user: set user and password")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return u, errors.New("must be a scheme and a host only; set topic")
	}
	return u, nil
}

// topics compiles the template of a topic.
func topics(template string) (*sink.Name, error) {
	return sink.NewName(template, cleanLevel, checkTopic)
}

// cleanLevel turns a value into one level of a topic. Names in Kubernetes contain no _, so a replacement cannot
// produce another object's name.
func cleanLevel(value string) string {
	if value == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '+' || r == '#' || r == utf8.RuneError || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, value)
}

// checkTopic returns an error if a topic is not valid for publishing.
func checkTopic(topic string) error {
	if err := checkText(topic); err != nil {
		return err
	}
	if strings.ContainsAny(topic, "+#") {
		return fmt.Errorf("%q has a wildcard", topic)
	}
	return nil
}

// checkText returns an error if a text is not a valid MQTT string.
func checkText(text string) error {
	switch {
	case len(text) > maxText:
		return fmt.Errorf("longer than %d bytes", maxText)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("contains invalid UTF-8 or a control character, such as a newline after a word from a file")
	}
	return nil
}
