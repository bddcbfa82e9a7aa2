package nats

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a NATS sink.
type Options struct {
	// Servers are addresses of one NATS system; the sink uses any of them: nats://HOST:4222, tls:// for TLS, ws://
	// and wss:// for WebSockets. Each may contain a user and a password, or a token in place of the user.
	Servers []string `yaml:"servers"`
	// Subject is a text/template over the event that makes the subject. The template has the field names of package
	// event. In its output, dots, spaces, * and > become _, and so does an empty value, such as the namespace of a
	// node. Default: tattler.{{.Data.Resource.Namespace}}.{{.Data.Resource.Resource}}.{{.Data.Op}}.
	Subject string `yaml:"subject"`
	// Stream is the JetStream stream that stores messages of the subjects.
	Stream Stream `yaml:"stream"`
	// User and Password are the credentials, if the server needs them.
	User     string `yaml:"user"`
	Password string `yaml:"password"`
	// Token is used instead of user and password.
	Token string `yaml:"token"`
	// Credentials is a file with a JWT and its key, as nsc writes it (.creds). It is read for each connection, so
	// that it can be renewed.
	Credentials string `yaml:"credentials"`
	// NKey is a file with the seed of a user's NKey. It is read for each connection.
	NKey string `yaml:"nkey"`
	// InboxPrefix is the prefix of the subjects for acknowledgements. Set this key if the user may subscribe only to
	// its own subjects. Default: _INBOX.
	InboxPrefix string `yaml:"inboxPrefix"`
	// Timeout bounds each attempt to connect and each wait for an answer. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows a password or a token to be sent without TLS to another machine.
	Insecure bool `yaml:"insecure"`
	// TLS requires TLS, even for nats://. It is an error with ws://.
	TLS sink.TLS `yaml:"tls"`
}

// Stream describes the stream. Without a name, any stream with the subject takes the changes.
type Stream struct {
	// Name is the stream that must acknowledge messages. It is an error if another stream has the subject.
	Name string `yaml:"name"`
	// Create creates the stream if it is missing. An existing stream stays as it is, whatever the keys below say.
	Create bool `yaml:"create"`
	// Subjects are the subjects of a new stream. Default: the literal words at the beginning of the subject, and >, such
	// as tattler.>.
	Subjects []string `yaml:"subjects"`
	// Storage is where a new stream keeps messages: file or memory. Default: file.
	Storage Storage `yaml:"storage"`
	// Replicas is the number of servers that keep each message, at most 5. Default: 1.
	Replicas int `yaml:"replicas"`
	// MaxAge is how long messages are kept. Default: for ever.
	MaxAge time.Duration `yaml:"maxAge"`
	// MaxBytes bounds the stream; the oldest messages are removed first. Default: no limit.
	MaxBytes sink.Size `yaml:"maxBytes"`
	// Duplicates is how long the stream remembers message ids, so that it does not store repeats. Default: 10m, or
	// MaxAge if that is shorter.
	Duplicates time.Duration `yaml:"duplicates"`
}

// Storage is where a stream keeps messages.
type Storage string

const (
	// File keeps messages on disk.
	File Storage = "file"
	// Memory loses messages with the server's process.
	Memory Storage = "memory"
)

const (
	defaultSubject    = "tattler.{{.Data.Resource.Namespace}}.{{.Data.Resource.Resource}}.{{.Data.Op}}"
	defaultDuplicates = 10 * time.Minute
	maxReplicas       = 5 // JetStream's limit
	maxSubject        = 1024
)

var schemes = []string{"nats", "tls", "ws", "wss"}

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	servers, err := parseServers(o.Servers)
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	o = o.withDefaults()
	if _, err := subjects(o.Subject); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	if err := o.Stream.validate(o.Subject); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	if err := o.validateUser(servers); err != nil {
		return err
	}
	if o.InboxPrefix != "" {
		if err := checkWords(o.InboxPrefix); err != nil {
			return fmt.Errorf("inboxPrefix: %w", err)
		}
	}
	if o.Timeout < 0 {
		return errors.New("timeout: must not be negative")
	}
	for _, u := range servers {
		if u.Scheme == "ws" && o.TLS != (sink.TLS{}) {
			return errors.New("tls: a server's address begins with ws://; use wss:// for TLS")
		}
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if err := o.clearText(servers); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return nil
}

// clearText returns an error if a password or a token would be sent without TLS. Credentials and NKey only sign.
func (o Options) clearText(servers []*url.URL) error {
	for _, u := range servers {
		encrypted := u.Scheme == "tls" || u.Scheme == "wss" || o.TLS != (sink.TLS{})
		if encrypted || u.User == nil && o.Password == "" && o.Token == "" {
			continue
		}
		instead := "tls://"
		if web(u) {
			instead = "wss://"
		}
		if err := sink.ClearText(o.Insecure, "the password or token", instead, u.Hostname()); err != nil {
			return err
		}
	}
	return nil
}

// validateUser allows only one kind of credentials.
func (o Options) validateUser(servers []*url.URL) error {
	ways := 0
	for _, there := range []bool{o.User != "" || o.Password != "", o.Token != "", o.Credentials != "", o.NKey != ""} {
		if there {
			ways++
		}
	}
	for _, u := range servers {
		if u.User != nil && ways > 0 {
			return errors.New("servers: an address already contains a user; remove it, or remove user, token, credentials and nkey")
		}
	}
	switch {
	case ways > 1:
		return errors.New("user, token, credentials and nkey exclude each other")
	case o.Password != "" && o.User == "":
		return errors.New("user: missing; the password needs one")
	case o.User != "" && o.Password == "":
		return errors.New("password: missing; use token for a token without a user")
	}
	return nil
}

// streamName matches JetStream's names of streams.
var streamName = regexp.MustCompile(`^[^\s.*>/\\\x00-\x1f\x7f]+$`)

func (s Stream) validate(subject string) error {
	switch {
	case s.Name != "" && !streamName.MatchString(s.Name):
		return errors.New("the name must not contain spaces, dots, *, > or slashes")
	case !s.Create && (len(s.Subjects) > 0 || s.Storage != "" || s.Replicas != 0 || s.MaxAge != 0 || s.MaxBytes != 0 || s.Duplicates != 0):
		return errors.New("only a name is allowed without create: true")
	case !s.Create:
		return nil
	case s.Name == "":
		return errors.New("create needs a name, such as TATTLER")
	case s.Storage != "" && s.Storage != File && s.Storage != Memory:
		return fmt.Errorf("storage must be %s or %s", File, Memory)
	case s.Replicas < 0 || s.Replicas > maxReplicas:
		return fmt.Errorf("replicas must be between 1 and %d", maxReplicas)
	case s.MaxAge < 0 || s.Duplicates < 0:
		return errors.New("maxAge and duplicates must not be negative")
	case s.MaxAge > 0 && s.Duplicates > s.MaxAge:
		return errors.New("duplicates must be at most maxAge")
	case len(s.Subjects) == 0 && len(covering(subject)) == 0:
		return errors.New("the subject begins with a template: set subjects")
	}
	for _, subject := range s.Subjects {
		words := strings.Split(strings.TrimSuffix(subject, ".>"), ".")
		for i, w := range words {
			if w == "*" {
				words[i] = "any"
			}
		}
		if err := checkWords(strings.Join(words, ".")); err != nil {
			return fmt.Errorf("subjects: %w", err)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Subject = cmp.Or(o.Subject, defaultSubject)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

// parseServers parses addresses. Its errors do not quote them, because they may contain a password.
func parseServers(servers []string) ([]*url.URL, error) {
	if len(servers) == 0 {
		return nil, errors.New("missing; an example is nats://127.0.0.1:4222")
	}
	out := make([]*url.URL, 0, len(servers))
	for i, s := range servers {
		u, err := url.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("number %d is not a URL (not shown: it may contain a credential)", i+1)
		}
		u.Scheme = strings.ToLower(u.Scheme)
		switch {
		case !slices.Contains(schemes, u.Scheme) || u.Hostname() == "":
			return nil, fmt.Errorf("number %d must begin with nats://, tls://, ws:// or wss:// and a host", i+1)
		case !web(u) && strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return nil, fmt.Errorf("number %d must be a scheme and a host only; set subject", i+1)
		}
		out = append(out, u)
	}
	if n := len(slices.DeleteFunc(slices.Clone(out), web)); n != 0 && n != len(out) {
		return nil, errors.New("ws:// and wss:// cannot be mixed with other schemes")
	}
	return out, nil
}

// web reports whether an address uses WebSockets.
func web(u *url.URL) bool { return u.Scheme == "ws" || u.Scheme == "wss" }
