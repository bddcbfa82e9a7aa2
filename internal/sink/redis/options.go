package redis

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a redis sink.
type Options struct {
	// URL is the server's address: redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS. The default port is 6379
	// and the default database is 0. A password without a user is for the user named default.
	URL string `yaml:"url"`
	// Stream is the name of the stream: a text, or a text/template over the event, such as
	// changes:{{.Data.Resource.Namespace}}. The template has the field names of package event. The server creates a
	// stream with its first entry. Default: tattler.
	Stream string `yaml:"stream"`
	// MaxLen is the approximate number of entries that a stream keeps. The oldest are removed first, even if a slow
	// consumer has not read them. 0 keeps all of them. Default: 0.
	MaxLen int64 `yaml:"maxLen"`
	// Replicas is the number of replicas that must have the entries before they count as sent. Default: 0.
	Replicas int `yaml:"replicas"`
	// Timeout bounds each attempt to connect and each wait for an answer. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows the password to be sent without TLS to another machine.
	Insecure bool     `yaml:"insecure"`
	TLS      sink.TLS `yaml:"tls"`
}

const maxReplicas = 100

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	t, err := parseURL(o.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if _, err := streamName(o.Stream); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	switch {
	case o.MaxLen < 0:
		return errors.New("maxLen: must not be negative")
	case o.Replicas < 0 || o.Replicas > maxReplicas:
		return fmt.Errorf("replicas: must be between 0 and %d", maxReplicas)
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	}
	return scheme.Check(t.Address, o.TLS, o.Insecure)
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

// streamName compiles the template of the stream's name.
func streamName(text string) (*sink.Name, error) {
	return sink.NewName(cmp.Or(text, "tattler"), nil, nil)
}

var scheme = sink.Scheme{Plain: "redis", Secure: "rediss", PlainPort: "6379", SecurePort: "6379", Example: "redis://localhost:6379/0"}

// target is a parsed URL.
type target struct {
	sink.Address
	database int
}

func parseURL(s string) (t target, err error) {
	if t.Address, err = scheme.Parse(s); err != nil {
		return t, err
	}
	if t.RawQuery != "" || t.Fragment != "" {
		return t, errors.New("must not have a query or a fragment: options have their own keys")
	}
	if path := strings.Trim(t.Path, "/"); path != "" {
		if t.database, err = strconv.Atoi(path); err != nil || t.database < 0 {
			return t, errors.New("the path must be the number of a database")
		}
	}
	return t, nil
}
