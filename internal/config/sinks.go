package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are the options of a type of sinks: a pointer to a struct with yaml tags, of texts, numbers,
// truths, durations, encoding.TextUnmarshalers, and structs, lists and maps of these.
type Options interface {
	// Validate says what is wrong. It talks to nobody.
	Validate() error
}

// SinkType is a type of sinks that a program has.
type SinkType struct {
	// Name is the type's key in a sink: file, webhook, log.
	Name string
	// New returns the options' defaults; each call another pointer.
	New func() Options
	// Schemes are the forms of an address for --to: what stands before the colon, and the options for an
	// address, which comes whole.
	Schemes map[string]func(address string) Options
}

func (d *decoder) isType(name string) bool { return slices.Contains(d.typeNames(), name) }

func (d *decoder) typeNames() []string {
	names := make([]string, len(d.types))
	for i, t := range d.types {
		names[i] = t.Name
	}
	return names
}

// sink decodes the options of a sink, in which credentials may stand.
func (d *decoder) sink(name, value *yaml.Node, s *Sink, key string) {
	if s.Type != "" {
		d.fail(name, key, "this sink has the type %s already: write two sinks", s.Type)
		return
	}
	s.Type = name.Value
	i := slices.IndexFunc(d.types, func(t SinkType) bool { return t.Name == s.Type })
	s.Options = d.types[i].New()
	d.places[key] = value
	inner := decoder{input: d.input, secrets: &secrets{lookupEnv: d.lookupEnv, readFile: d.readFile}}
	before := len(d.errs)
	inner.value(value, reflect.ValueOf(s.Options).Elem(), key, nil)
	s.secrets = inner.secrets.found
	if len(d.errs) == before { // else Validate would complain of what could not be read
		if err := s.Options.Validate(); err != nil {
			inner.invalid(key, s.Hide(err.Error()))
		}
	}
}

// invalid notes what Validate says; where that begins with a key and a colon, at the key.
func (d *decoder) invalid(key, reason string) {
	if name, rest, found := strings.Cut(reason, ": "); found && !strings.ContainsAny(name, " \"") {
		key, reason = key+"."+name, rest
	}
	d.failAt(key, "%s", reason)
}

// SinkFromURL makes a sink of an address as --to takes it: file:changes.jsonl, https://example.com/x,
// log: or - for stdout. Which there are, the types say. It is named after its type and address, so that
// the same address goes on where it was; user, password and query of a URL do not count.
func (l *Loader) SinkFromURL(address string) (Sink, error) {
	scheme, rest, found := strings.Cut(address, ":")
	if address == "-" {
		scheme, rest, found = "log", "", true
	}
	scheme = strings.ToLower(scheme)
	var schemes []string
	for _, t := range l.Sinks {
		for s, options := range t.Schemes {
			schemes = append(schemes, s+":")
			if !found || s != scheme {
				continue
			}
			sink := Sink{Type: t.Name, Options: options(address)}
			setDefaults(&sink)
			sink.Name = sinkName(t.Name, scheme, rest, address)
			if err := sink.Options.Validate(); err != nil {
				hidden := strings.ReplaceAll(err.Error(), address, shorten(address))
				return Sink{}, fmt.Errorf("read --to %s: %s", shorten(address), hidden)
			}
			return sink, nil
		}
	}
	slices.Sort(schemes)
	reason := fmt.Sprintf("want an address that begins with one of %s", strings.Join(schemes, ", "))
	if !found {
		reason += fmt.Sprintf("; for a file, file:%s", shorten(address))
	}
	return Sink{}, fmt.Errorf("read --to %s: %s", shorten(address), reason)
}

// Add adds a sink that SinkFromURL made to those of a file. A name that is taken is an error.
func (c *Config) Add(s Sink) error {
	if slices.ContainsFunc(c.Sinks, func(other Sink) bool { return other.Name == s.Name }) {
		return fmt.Errorf("add sink: there is one with the name %s already, perhaps to the same address", s.Name)
	}
	c.Sinks = append(c.Sinks, s)
	return nil
}

// sinkName is the type, and a hash of the address where there is one.
func sinkName(typ, scheme, rest, address string) string {
	if rest == "" {
		return typ
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		rest = u.String()
	} else if abs, err := filepath.Abs(rest); err == nil {
		rest = scheme + ":" + abs
	}
	sum := sha256.Sum256([]byte(rest))
	return typ + "-" + hex.EncodeToString(sum[:4])
}

// shorten leaves out of an address what may be a credential.
func shorten(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		scheme, _, _ := strings.Cut(address, ":")
		return scheme + ":…"
	case u.Host == "":
		return address
	}
	return u.Scheme + "://" + u.Host + "/…"
}
