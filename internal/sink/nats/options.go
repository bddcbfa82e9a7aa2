package nats

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the keys of a NATS sink.
type Options struct {
	// Servers are addresses of one NATS system, of which any will do: nats://HOST:4222, tls:// for TLS,
	// ws:// and wss:// for WebSockets. Each may hold a user and a password, or a token in the user's place.
	Servers []string `yaml:"servers"`
	// Subject is a text/template over the event, with the field names of package event
	// (tattler.{{.Data.Resource.Namespace}}.{{.Data.Resource.Resource}}.{{.Data.Op}}). What it prints is
	// cleaned: dots, spaces, * and > become _, and so does nothing, such as the namespace of a node.
	Subject string `yaml:"subject"`
	// Stream is the JetStream stream that has the subjects.
	Stream Stream `yaml:"stream"`
	// User and Password say who we are, where the server asks for that.
	User     string `yaml:"user"`
	Password string `yaml:"password"`
	// Token takes the place of user and password.
	Token string `yaml:"token"`
	// Credentials is a file with a JWT and its key, as nsc makes them (.creds). It is read for each
	// connection, so that it can be renewed.
	Credentials string `yaml:"credentials"`
	// NKey is a file with the seed of a user's NKey. It is read for each connection.
	NKey string `yaml:"nkey"`
	// InboxPrefix begins the subjects on which acknowledgements come back (_INBOX), for users who may
	// subscribe to their own only.
	InboxPrefix string `yaml:"inboxPrefix"`
	// Timeout bounds each attempt to connect and each wait for an answer (10 seconds).
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows a password or a token to be sent without TLS to another machine (false).
	Insecure bool `yaml:"insecure"`
	// TLS asks for TLS whatever the scheme.
	TLS sink.TLS `yaml:"tls"`
}

// Stream is what is known of the stream. Without a name, whichever has the subject takes the changes.
type Stream struct {
	// Name is the stream that has to acknowledge; another one's subject is an error then.
	Name string `yaml:"name"`
	// Create makes the stream if it is not there. One that is there stays as it is, whatever the keys below.
	Create bool `yaml:"create"`
	// Subjects are those of a stream that is made (the first words of the subject up to its first
	// template, and >: tattler.>).
	Subjects []string `yaml:"subjects"`
	// Storage is where a new stream keeps messages: file or memory (file).
	Storage Storage `yaml:"storage"`
	// Replicas is how many servers keep each message (1, at most 5).
	Replicas int `yaml:"replicas"`
	// MaxAge is how long messages are kept (for ever).
	MaxAge time.Duration `yaml:"maxAge"`
	// MaxBytes is how much is kept; the oldest goes first (no limit).
	MaxBytes sink.Size `yaml:"maxBytes"`
	// Duplicates is how long the stream remembers what it has, so that a repeat is not stored again
	// (10 minutes, and at most MaxAge: longer than the longest wait between two attempts).
	Duplicates time.Duration `yaml:"duplicates"`
}

// Storage is where a stream keeps messages.
type Storage string

const (
	// File is on disk.
	File Storage = "file"
	// Memory is lost with the server's process.
	Memory Storage = "memory"
)

const (
	defaultSubject    = "tattler.{{.Data.Resource.Namespace}}.{{.Data.Resource.Resource}}.{{.Data.Op}}"
	defaultDuplicates = 10 * time.Minute
	maxReplicas       = 5 // JetStream's limit
	maxSubject        = 1024
)

var schemes = []string{"nats", "tls", "ws", "wss"}

// Validate says what is wrong with the options, naming the key, and showing no credential.
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
		return errors.New("timeout: not negative")
	}
	for _, u := range servers {
		if u.Scheme == "ws" && o.TLS != (sink.TLS{}) {
			return errors.New("tls: a server's address begins with ws://; with TLS it is wss://")
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

// clearText refuses to show a password or a token. Credentials and NKey sign, and show none.
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

// validateUser allows one way to say who we are.
func (o Options) validateUser(servers []*url.URL) error {
	ways := 0
	for _, there := range []bool{o.User != "" || o.Password != "", o.Token != "", o.Credentials != "", o.NKey != ""} {
		if there {
			ways++
		}
	}
	for _, u := range servers {
		if u.User != nil && ways > 0 {
			return errors.New("servers: an address has a user already; without it user, token, credentials or nkey holds")
		}
	}
	switch {
	case ways > 1:
		return errors.New("user, token, credentials and nkey exclude each other")
	case o.Password != "" && o.User == "":
		return errors.New("user: the password needs one")
	case o.User != "" && o.Password == "":
		return errors.New("password: the user needs one; a token alone is token")
	}
	return nil
}

// streamName is what JetStream takes as the name of a stream.
var streamName = regexp.MustCompile(`^[^\s.*>/\\\x00-\x1f\x7f]+$`)

func (s Stream) validate(subject string) error {
	switch {
	case s.Name != "" && !streamName.MatchString(s.Name):
		return errors.New("a name has no spaces, dots, *, > and slashes")
	case !s.Create && (len(s.Subjects) > 0 || s.Storage != "" || s.Replicas != 0 || s.MaxAge != 0 || s.MaxBytes != 0 || s.Duplicates != 0):
		return errors.New("what a stream is like is for create: true only")
	case !s.Create:
		return nil
	case s.Name == "":
		return errors.New("to create it, a name is needed, such as TATTLER")
	case s.Storage != "" && s.Storage != File && s.Storage != Memory:
		return fmt.Errorf("storage is %s or %s", File, Memory)
	case s.Replicas < 0 || s.Replicas > maxReplicas:
		return fmt.Errorf("replicas are from 1 to %d", maxReplicas)
	case s.MaxAge < 0 || s.Duplicates < 0:
		return errors.New("maxAge and duplicates are not negative")
	case s.MaxAge > 0 && s.Duplicates > s.MaxAge:
		return errors.New("duplicates is at most maxAge")
	case len(s.Subjects) == 0 && len(covering(subject)) == 0:
		return errors.New("the subject begins with a template: say which subjects the stream is to have")
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
	if o.Subject == "" {
		o.Subject = defaultSubject
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	return o
}

// parseServers reads addresses. Their errors show none: what is wrong may be a part of a password.
func parseServers(servers []string) ([]*url.URL, error) {
	if len(servers) == 0 {
		return nil, errors.New("a NATS sink needs one, such as nats://127.0.0.1:4222")
	}
	out := make([]*url.URL, 0, len(servers))
	for i, s := range servers {
		u, err := url.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("number %d is not a URL (not shown: it may hold a credential)", i+1)
		}
		u.Scheme = strings.ToLower(u.Scheme)
		switch {
		case !slices.Contains(schemes, u.Scheme) || u.Hostname() == "":
			return nil, fmt.Errorf("number %d must begin with nats://, tls://, ws:// or wss:// and a host", i+1)
		case !web(u) && strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return nil, fmt.Errorf("number %d has more than a host; the subject is a key of its own", i+1)
		}
		out = append(out, u)
	}
	if n := len(slices.DeleteFunc(slices.Clone(out), web)); n != 0 && n != len(out) {
		return nil, errors.New("all or none begin with ws:// or wss://")
	}
	return out, nil
}

// web tells whether an address is of WebSockets.
func web(u *url.URL) bool { return u.Scheme == "ws" || u.Scheme == "wss" }
